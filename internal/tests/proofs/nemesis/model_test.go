//go:build linux

package nemesis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// One model is for all kinds of locks: a hold has all there is, or a weight. Holds with a weight add up to a limit
// at most. Those of readers have none.

// unlimited is the limit of readers.
const unlimited = math.MaxInt32

// state has the holders and the highest tokens so far.
type state struct {
	held  []heldBy // in an order, so that equal states are equal
	wrote int64    // the highest token of a hold without a weight
	of    lifeID   // the process that had it
	any   int64    // the highest token of anybody
}

type heldBy struct {
	id     turnID
	weight int // 0: all there is
}

func (s state) with(h heldBy) state {
	s.held = append(slices.Clone(s.held), h)
	slices.SortFunc(s.held, func(a, b heldBy) int {
		return cmp.Or(cmp.Compare(a.id.worker, b.id.worker), cmp.Compare(a.id.life, b.id.life), cmp.Compare(a.id.turn, b.id.turn))
	})
	return s
}

// without returns the state after the end of a hold, and false if there is none.
func (s state) without(id turnID) (state, bool) {
	before := len(s.held)
	s.held = slices.DeleteFunc(slices.Clone(s.held), func(h heldBy) bool { return h.id == id })
	return s, len(s.held) < before
}

// seen takes note of the token of a hold.
func (s state) seen(in input) state {
	s.any = max(s.any, in.token)
	if in.weight == 0 && in.token > s.wrote {
		s.wrote, s.of = in.token, in.id.lifeID
	}
	return s
}

// lets reports whether a hold may begin. Without a weight, it has a higher token than all before; with one, a token
// that is higher than those of all holds without.
func (s state) lets(in input, r rule) bool {
	if in.weight == 0 {
		again := r.shared && in.token == s.any && in.token == s.wrote && in.id.lifeID == s.of
		return len(s.held) == 0 && (in.token == 0 || in.token > s.any || again)
	}
	sum, alone := in.weight, false
	for _, h := range s.held {
		sum, alone = sum+h.weight, alone || h.weight == 0
	}
	return !alone && sum <= r.limit && (in.token == 0 || in.token > s.wrote)
}

// step is what happens to a lock.
type step int

const (
	begin step = iota // of a hold
	down              // the writer goes on as a reader
	end               // of a hold
)

func (s step) String() string { return [...]string{"begins", "goes on as a reader", "ends"}[s] }

type input struct {
	step   step
	id     turnID // of the hold
	weight int
	token  int64 // 0: not known
}

// model is a lock that lets a contender in if, with it, no more is held than the rule allows. A writer becomes a reader in
// one step, in which no other contender can come in.
func model(from state, r rule) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return from },
		Equal: func(a, b any) bool {
			x, y := a.(state), b.(state)
			return slices.Equal(x.held, y.held) && x.wrote == y.wrote && x.of == y.of && x.any == y.any
		},
		Step: func(before, in, _ any) (bool, any) { return before.(state).after(in.(input), r) },
	}
}

// after returns whether something can happen in a state, and the state after it.
func (s state) after(in input, r rule) (bool, state) {
	if in.step == begin {
		return s.lets(in, r), s.with(heldBy{in.id, in.weight}).seen(in)
	}
	after, ok := s.without(in.id)
	if in.step == down {
		after = after.with(heldBy{in.id, 1})
	}
	return ok, after
}

// history is a beginning and an end of each hold, and between them the downgrade of one that had it. A hold begins within
// its first look that said held.
func history(all []span) []porcupine.Operation {
	var ops []porcupine.Operation
	add := func(in input, call, ret int64) {
		ops = append(ops, porcupine.Operation{ClientId: in.id.worker, Input: in, Call: call, Return: ret})
	}
	for _, s := range all {
		add(input{begin, s.id, s.Weight, s.token}, s.first.From, s.first.To)
		if s.down() {
			add(input{step: down, id: s.id}, s.lastAlone.From, s.firstRead.To)
		}
		add(input{step: end, id: s.id}, s.last.From, s.ended)
	}
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return ops
}

// afterAll is the state after a history whose operations have all returned. The steps of one hold are called in their
// order.
func afterAll(s state, ops []porcupine.Operation, r rule) state {
	for _, op := range ops {
		_, s = s.after(op.Input.(input), r)
	}
	return s
}

const (
	pieceSize   = 501 // odd: in the middle of a hold, often
	pieceWithin = time.Minute
)

// linearizable checks a history in pieces, which end where no operation is under way: the checker's memory grows with the
// square of their number. It returns what is wrong with the pieces that are not linearizable, or that it cannot decide on
// in time.
func linearizable(ops []porcupine.Operation, r rule) (violations, undecided []string) {
	var s state
	for len(ops) > 0 {
		n := quiet(ops, pieceSize)
		switch m := model(s, r); porcupine.CheckOperationsTimeout(m, ops[:n], pieceWithin) {
		case porcupine.Illegal:
			violations = append(violations, unexplained(m, ops[:n]))
		case porcupine.Unknown:
			undecided = append(undecided, fmt.Sprintf("not decided: %d operations from %.6f on", n, float64(ops[0].Call)/1e9))
		}
		s = afterAll(s, ops[:n], r)
		ops = ops[n:]
	}
	return violations, undecided
}

// unexplained names a step that has no place in the longest order of the others, and the last ones of these.
func unexplained(m porcupine.Model, ops []porcupine.Operation) string {
	const shown = 6
	_, info := porcupine.CheckOperationsVerbose(m, ops, pieceWithin)
	order := slices.MaxFunc(info.PartialLinearizations()[0], func(a, b []int) int { return cmp.Compare(len(a), len(b)) })
	text := "not linearizable:"
	left := slices.IndexFunc(ops, func(op porcupine.Operation) bool {
		return !slices.ContainsFunc(order, func(i int) bool { return ops[i].Input == op.Input })
	})
	for _, i := range append(order[max(0, len(order)-shown):], left) {
		in := ops[i].Input.(input)
		text += fmt.Sprintf(" %v (token %#x, weight %d) %v from %.6f to %.6f;", in.id, in.token, in.weight, in.step,
			float64(ops[i].Call)/1e9, float64(ops[i].Return)/1e9)
	}
	return text
}

// quiet returns the least number of operations, at least so many, all of which have returned
// before the next one is called.
func quiet(ops []porcupine.Operation, least int) int {
	returned := int64(0)
	for i, op := range ops {
		if i >= least && returned < op.Call {
			return i
		}
		returned = max(returned, op.Return)
	}
	return len(ops)
}
