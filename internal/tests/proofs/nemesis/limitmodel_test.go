//go:build linux

package nemesis

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// This file judges semaphores: of the leases that are held, at no time may there be more than
// the limit that was in force when the last of them was let in.
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
			r.settled = e.To
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

func judgeLimit(all []span, changes []resize, first int) verdict {
	bad, unknown := linearizable(limitHistory(all, changes), limitState{limits: []limitOf{{limit: first}}}, limitModel, afterLimit)
	v := verdict{violations: tooMany(all, changes, first), illegal: bad, undecided: unknown}
	if len(changes) > 0 {
		settled := 0
		for _, r := range changes {
			if r.settled < math.MaxInt64 {
				settled++
			}
		}
		v.meanwhile = fmt.Sprintf("%d changes of the limit, %d of which all servers were seen to have", len(changes), settled)
	}
	return v
}

// tooMany returns the holds that began while, with them, more was held than the limit. Of those
// that were held then, the last was let in after the latest of their views.
func tooMany(all []span, changes []resize, first int) []string {
	var found []string
	var beside []span
	for _, s := range all {
		if s.end() <= s.begin() {
			continue // one instant, which the model looks at
		}
		beside = append(slices.DeleteFunc(beside, func(o span) bool { return o.end() <= s.begin() }), s)
		sum, view := 0, int64(0)
		for _, o := range beside {
			sum, view = sum+o.Weight, max(view, o.View)
		}
		if limit := highest(changes, first, view, s.begin()); sum > limit {
			found = append(found, fmt.Sprintf("%d held of %d: %v", sum, limit, beside))
		}
	}
	return found
}

// limitState has the holders with their numbers of leases, and the limits that a server may have.
type limitState struct {
	held   []heldBy  // in an order, so that equal states are equal
	limits []limitOf // in the order in which they came; the last is in force
	open   []turnID  // of these, the Resizes that are still to be settled
}

type heldBy struct {
	id     turnID
	weight int
}

type limitOf struct {
	by    turnID // the Resize
	limit int
}

func (s limitState) sum() (n int) {
	for _, h := range s.held {
		n += h.weight
	}
	return n
}

func (s limitState) most() (n int) {
	for _, l := range s.limits {
		n = max(n, l.limit)
	}
	return n
}

func (s limitState) with(h heldBy) limitState {
	s.held = append(slices.Clone(s.held), h)
	slices.SortFunc(s.held, func(a, b heldBy) int { return a.id.compare(b.id) })
	return s
}

// limitStep is what happens to a semaphore.
type limitStep int

const (
	limitBegin   limitStep = iota // of a hold
	limitEnd                      // of a hold
	limitResize                   // a new limit is in force
	limitSettled                  // no server has one from before it
)

type limitInput struct {
	step limitStep
	id   turnID // of the hold, or the Resize
	n    int    // leases, or the limit
}

// limitModel is a semaphore that lets a contender in if, with it, no more is held than one of
// the limits which a server may have.
func limitModel(from limitState) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return from },
		Equal: func(a, b any) bool {
			x, y := a.(limitState), b.(limitState)
			return slices.Equal(x.held, y.held) && slices.Equal(x.limits, y.limits) && slices.Equal(x.open, y.open)
		},
		Step: func(state, input, _ any) (bool, any) {
			s, in := state.(limitState), input.(limitInput)
			switch in.step {
			case limitBegin:
				return s.sum()+in.n <= s.most(), s.with(heldBy{in.id, in.n})
			case limitEnd:
				i := slices.Index(s.held, heldBy{in.id, in.n})
				if i < 0 {
					return false, s
				}
				s.held = slices.Delete(slices.Clone(s.held), i, i+1)
				return true, s
			case limitResize:
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
		},
	}
}

// limitHistory is a beginning and an end of each hold, and each Resize with the moment at which
// it is settled.
//
// While no Resize is under way, a hold begins within its first look that said held, as for other
// locks: while the limit does not change, a later beginning is never worse. Only while a Resize is
// under way, the beginning can be as early as the view of the contender. (Otherwise a waiter that
// waits for long would be under way all the time, and the history could not be checked in pieces.)
//
// A Resize can be settled at any time from its call on, for the same reason: to settle later is
// never worse.
func limitHistory(all []span, changes []resize) []porcupine.Operation {
	var ops []porcupine.Operation
	add := func(worker int, in limitInput, call, ret int64) {
		ops = append(ops, porcupine.Operation{ClientId: worker, Input: in, Call: call, Return: ret})
	}
	for _, s := range all {
		add(s.id.worker, limitInput{limitBegin, s.id, s.Weight}, letIn(s, changes), s.first.To)
		add(s.id.worker, limitInput{limitEnd, s.id, s.Weight}, s.last.From, s.ended)
	}
	for _, r := range changes {
		add(r.id.worker, limitInput{limitResize, r.id, r.limit}, r.call, r.ret)
		if r.settled < math.MaxInt64 {
			add(r.id.worker, limitInput{limitSettled, r.id, 0}, r.call, r.settled)
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

// afterLimit is the state after a history that is linearizable and whose operations have all
// returned. Of several limits that may be in force then the highest counts, as one.
func afterLimit(from limitState, ops []porcupine.Operation) limitState {
	held := make(map[turnID]int)
	for _, h := range from.held {
		held[h.id] = h.weight
	}
	calls, returns, settled := make(map[turnID]int64), make(map[turnID]int64), make(map[turnID]bool)
	limits := map[turnID]int{{}: from.most()} // that are still to be reckoned with
	calls[turnID{}], returns[turnID{}] = math.MinInt64, math.MinInt64
	for _, op := range ops {
		switch in := op.Input.(limitInput); in.step {
		case limitBegin:
			held[in.id] = in.n
		case limitEnd:
			delete(held, in.id)
		case limitResize:
			calls[in.id], returns[in.id], limits[in.id] = op.Call, op.Return, in.n
		case limitSettled:
			settled[in.id] = true
		}
	}
	s := limitState{limits: []limitOf{{}}}
	for id, n := range held {
		s = s.with(heldBy{id, n})
	}
	for id, n := range limits {
		withdrawn := false
		for later := range settled {
			withdrawn = withdrawn || calls[later] > returns[id]
		}
		if !withdrawn {
			s.limits[0].limit = max(s.limits[0].limit, n)
		}
	}
	return s
}
