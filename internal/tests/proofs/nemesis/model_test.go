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
// at most. Those of readers have none, and that of a semaphore can change.
//
// # When a contender is let in
//
// A contender is let in at the moment of its server's last answer or event by which it decided. That
// moment is after it sent its latest listing (claim.View), and before it says that it holds. Its
// leases count from there on. The moment can be before the acquisition returns, because the
// answer takes time to arrive, and the process can be stopped meanwhile. If the return were taken
// instead, a Resize in between would be called a violation.
//
// # When a limit is in force
//
// Resize changes the limit at a moment between its call and its return, but at each server only when
// the server hears of it. A server that lags lets contenders in by the limit that it knows. Nothing
// can prevent this, because the answer to a listing can be on its way when Resize returns. So
// earlier limits count until all servers have been seen to have the new one. The worker that has
// called Resize asks the servers for that (eventSettled). From then on no server answers by an
// earlier limit. This needs no assumption about how long a server can lag. While a server is cut
// off or stopped, nothing is settled, and the check is as lenient as it must be.
//
// A Resize whose process was killed, or which failed, may be carried out later than that. But the
// library sets a limit only if no other was set since it read the one before. So such a Resize is
// carried out before every Resize that is called after the death and succeeds, or never. For the
// check it has been carried out by that call, and withdraws nothing.

// unlimited is the limit of readers.
const unlimited = math.MaxInt32

// resize is a call of Resize.
type resize struct {
	id      turnID
	limit   int
	call    int64
	ret     int64 // by then it has been carried out, or never will be
	known   bool  // it has been carried out
	settled int64 // from then on no server has an earlier limit; math.MaxInt64: not known
	gone    int64 // from then on no server has this one
}

// resizes reads them, in the order of their calls.
func resizes(events []event, deaths map[lifeID]int64) []resize {
	found := make(map[turnID]*resize)
	for _, e := range events {
		r := found[e.id()]
		switch e.What {
		case eventResizing:
			over := int64(math.MaxInt64)
			if died, ok := deaths[e.id().lifeID]; ok {
				over = died
			}
			found[e.id()] = &resize{id: e.id(), limit: e.Limit, call: e.From, ret: over, settled: math.MaxInt64}
		case eventResized:
			r.ret, r.known = e.To, e.Error == ""
		case eventSettled:
			if r != nil { // of this piece of the history
				r.settled = e.To
			}
		}
	}
	all := make([]resize, 0, len(found))
	for _, r := range found {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b resize) int { return cmp.Compare(a.call, b.call) })
	for i := range all {
		if !all[i].known {
			all[i].ret = overBy(all, all[i].ret, func(r resize) int64 { return r.call - 1 })
		}
	}
	for i := range all {
		all[i].gone = gone(all, all[i].ret)
	}
	return all
}

// overBy returns when the first is over, by what at says, of those that are known and were
// called after a time.
func overBy(all []resize, after int64, at func(resize) int64) int64 {
	over := int64(math.MaxInt64)
	for _, r := range all {
		if r.known && r.call > after {
			over = min(over, at(r))
		}
	}
	return over
}

// gone returns from when on no server has a limit that came before all that were called after a
// time.
func gone(all []resize, after int64) int64 {
	return overBy(all, after, func(r resize) int64 { return r.settled })
}

// highest returns the highest limit that a server can have had in a time.
func highest(all []resize, first int, from, to int64) int {
	most := 0
	if gone(all, math.MinInt64) >= from {
		most = first
	}
	for _, r := range all {
		if r.call <= to && r.gone >= from {
			most = max(most, r.limit)
		}
	}
	return most
}

// state has the holders, the limits that a server may have, and the highest tokens so far.
type state struct {
	held   []heldBy  // in an order, so that equal states are equal
	limits []limitOf // in the order in which they came; the last is in force
	open   []turnID  // of these, the Resizes that are still to be settled
	wrote  int64     // the highest token of a hold without a weight
	of     lifeID    // the process that had it
	any    int64     // the highest token of anybody
}

type heldBy struct {
	id     turnID
	weight int // 0: all there is
}

type limitOf struct {
	by    turnID // the Resize
	limit int
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
	if in.n == 0 && in.token > s.wrote {
		s.wrote, s.of = in.token, in.id.lifeID
	}
	return s
}

// most returns the highest limit that a server may have.
func (s state) most() (n int) {
	for _, l := range s.limits {
		n = max(n, l.limit)
	}
	return n
}

// lets reports whether a hold may begin. Without a weight, it has a higher token than all before; with one, a token
// that is higher than those of all holds without. shared says that consecutive holds of one process can have the same
// token, because it handed its place over, or kept it.
func (s state) lets(in input, shared bool) bool {
	if in.n == 0 {
		again := shared && in.token == s.any && in.token == s.wrote && in.id.lifeID == s.of
		return len(s.held) == 0 && (in.token == 0 || in.token > s.any || again)
	}
	sum, alone := in.n, false
	for _, h := range s.held {
		sum, alone = sum+h.weight, alone || h.weight == 0
	}
	return !alone && sum <= s.most() && (in.token == 0 || in.token > s.wrote)
}

// step is what happens to a lock.
type step int

const (
	begin   step = iota // of a hold
	down                // the writer goes on as a reader
	end                 // of a hold
	changed             // a new limit is in force
	settled             // no server has one from before it
)

type input struct {
	step  step
	id    turnID // of the hold, or the Resize
	n     int    // the weight, or the limit
	token int64  // 0: not known
}

// model is a lock that lets a contender in if, with it, no more is held than one of the limits allows which a server
// may have. A writer becomes a reader in one step, in which no other contender can come in.
func model(from state, shared bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return from },
		Equal: func(a, b any) bool {
			x, y := a.(state), b.(state)
			return slices.Equal(x.held, y.held) && slices.Equal(x.limits, y.limits) && slices.Equal(x.open, y.open) &&
				x.wrote == y.wrote && x.of == y.of && x.any == y.any
		},
		Step: func(before, in, _ any) (bool, any) { return before.(state).after(in.(input), shared) },
	}
}

// after returns whether something can happen in a state, and the state after it.
func (s state) after(in input, shared bool) (bool, state) {
	switch in.step {
	case begin:
		return s.lets(in, shared), s.with(heldBy{in.id, in.n}).seen(in)
	case down:
		after, ok := s.without(in.id)
		return ok, after.with(heldBy{in.id, 1})
	case end:
		after, ok := s.without(in.id)
		return ok, after
	case changed:
		s.limits = append(slices.Clone(s.limits), limitOf{in.id, in.n})
		s.open = append(slices.Clone(s.open), in.id)
		return true, s
	default:
		if !slices.Contains(s.open, in.id) {
			return false, s // it has not come yet
		}
		s.open = slices.DeleteFunc(slices.Clone(s.open), func(id turnID) bool { return id == in.id })
		// If it is not there, a later one has been settled before.
		if i := slices.IndexFunc(s.limits, func(l limitOf) bool { return l.by == in.id }); i >= 0 {
			s.limits = s.limits[i:]
		}
		return true, s
	}
}

// history is a beginning and an end of each hold, and between them the downgrade of one that had it. It has each Resize
// with the moment at which it is settled.
//
// While no Resize is under way, a hold begins within its first look that said held: while the limit does not change, a
// later beginning is never worse. Only while a Resize is under way, the beginning can be as early as the view of the
// contender. (Otherwise a waiter that waits for long would be under way all the time, and the history could not be
// checked in pieces.) A Resize can be settled at any time from its call on, for the same reason.
func history(all []span, changes []resize) []porcupine.Operation {
	var ops []porcupine.Operation
	add := func(in input, call, ret int64) {
		ops = append(ops, porcupine.Operation{ClientId: in.id.worker, Input: in, Call: call, Return: ret})
	}
	for _, s := range all {
		add(input{begin, s.id, s.Weight, s.token}, letIn(s, changes), s.first.To)
		if s.down() {
			add(input{step: down, id: s.id}, s.lastAlone.From, s.firstRead.To)
		}
		add(input{step: end, id: s.id}, s.last.From, s.ended)
	}
	for _, r := range changes {
		add(input{step: changed, id: r.id, n: r.limit}, r.call, r.ret)
		if r.settled < math.MaxInt64 {
			add(input{step: settled, id: r.id}, r.call, r.settled)
		}
	}
	return ops
}

// letIn returns the earliest point to look at for the beginning of a hold.
func letIn(s span, changes []resize) int64 {
	for _, r := range changes { // in the order of their calls
		if r.call > s.first.From {
			break
		}
		if min(r.settled, r.gone) >= s.View {
			return max(s.View, r.call)
		}
	}
	return s.first.From
}

// afterAll is the state after a history that is linearizable and whose operations have all returned. The steps of one
// hold are called in their order. Of several limits that may be in force then the highest counts, as one.
func afterAll(from state, ops []porcupine.Operation) state {
	calls, returns := map[turnID]int64{{}: math.MinInt64}, map[turnID]int64{{}: math.MinInt64}
	limits, settledBy := map[turnID]int{{}: from.most()}, make(map[turnID]bool)
	s := from
	for _, op := range ops {
		switch in := op.Input.(input); in.step {
		case begin:
			s = s.with(heldBy{in.id, in.n}).seen(in)
		case down, end:
			_, s = s.after(in, false)
		case changed:
			calls[in.id], returns[in.id], limits[in.id] = op.Call, op.Return, in.n
		case settled:
			settledBy[in.id] = true
		}
	}
	highest := 0
	for id, n := range limits {
		withdrawn := false
		for later := range settledBy {
			withdrawn = withdrawn || calls[later] > returns[id]
		}
		if !withdrawn {
			highest = max(highest, n)
		}
	}
	s.limits, s.open = []limitOf{{limit: highest}}, nil
	return s
}

const (
	pieceSize   = 501 // odd: in the middle of a hold, often
	pieceWithin = 20 * time.Second
)

// linearizable checks a history in pieces, which end where no operation is under way:
// the checker's memory grows with the square of their number. It returns the pieces that
// are not linearizable, and how many it could not decide on in time.
func linearizable(ops []porcupine.Operation, limit int, shared bool) (bad []string, unknown int) {
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	s := state{limits: []limitOf{{limit: limit}}}
	for len(ops) > 0 {
		n := quiet(ops, pieceSize)
		switch porcupine.CheckOperationsTimeout(model(s, shared), ops[:n], pieceWithin) {
		case porcupine.Illegal:
			bad = append(bad, fmt.Sprintf("not linearizable: %d operations from %.6f to %.6f",
				n, float64(ops[0].Call)/1e9, float64(ops[n-1].Call)/1e9))
		case porcupine.Unknown:
			unknown++
		}
		s = afterAll(s, ops[:n])
		ops = ops[n:]
	}
	return bad, unknown
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
