//go:build linux

package nemesis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// turnID names an acquisition.
type turnID struct {
	lifeID
	turn int
}

func (id turnID) String() string { return fmt.Sprintf("w%d.%d#%d", id.worker, id.life, id.turn) }

func (e event) id() turnID { return turnID{lifeID{e.Worker, e.Life}, e.Turn} }

// span is a hold as seen by its looks.
type span struct {
	id    turnID
	token int64 // 0: not known
	first event // the first look that said held
	last  event // the last one that did
	ended int64 // by then it had ended: see the package's documentation

	claim
	lastAlone event // of a writer that has become a reader: the last look as a writer
	firstRead event // and the first as a reader
}

// begin and end are between which it was held for certain; end is the lesser if there was
// one look only, within which it was held.
func (s span) begin() int64 { return s.first.To }
func (s span) end() int64   { return s.last.From }

func (s span) String() string {
	what := ""
	if s.Weight > 0 {
		what = fmt.Sprintf(", %d leases,", s.Weight)
	}
	return fmt.Sprintf("%v token %#x%s held from %.6f to %.6f", s.id, s.token, what, float64(s.begin())/1e9, float64(s.end())/1e9)
}

// spans returns the holds that were ever seen held, in the order of their first looks.
func spans(events []event, deaths map[lifeID]int64) []span {
	found := make(map[turnID]*span)
	got := make(map[turnID]claim)
	for _, e := range events {
		s := found[e.id()]
		switch {
		case e.What == eventGot:
			got[e.id()] = e.claim
		case e.What == eventLook && e.Held && s == nil:
			died, ok := deaths[e.id().lifeID]
			if !ok {
				died = math.MaxInt64
			}
			found[e.id()] = &span{id: e.id(), first: e, last: e, ended: died, claim: got[e.id()]}
		case s == nil:
		case e.What == eventLook && e.Held:
			if e.Reads && !s.last.Reads {
				s.lastAlone, s.firstRead = s.last, e
			}
			s.last = e
		case e.What == eventLook, e.What == eventFree:
			s.ended = min(s.ended, e.To)
		case e.What == eventToken:
			s.token = e.Token
		}
	}
	all := make([]span, 0, len(found))
	for _, s := range found {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.begin(), b.begin()), cmp.Compare(a.id.String(), b.id.String()))
	})
	return all
}

// overlaps returns what spans of two holds have in common, once for each hold that begins
// while another lasts.
func overlaps(all []span) []string {
	var found []string
	var longest span // of those so far, the one that ends last
	for _, s := range all {
		if s.end() <= s.begin() {
			continue // one instant, which the model looks at
		}
		if longest.end() > s.begin() {
			both := time.Duration(min(longest.end(), s.end()) - s.begin())
			found = append(found, fmt.Sprintf("two holders for %v: %v and %v", both, longest, s))
		}
		if s.end() > longest.end() {
			longest = s
		}
	}
	return found
}

// refusedHolders returns the holds that held after the register had refused their token. It refuses a
// token only after a higher one was in use.
func refusedHolders(events []event) []string {
	refused := make(map[turnID]event)
	var found []string
	for _, e := range events {
		if e.What == eventWrite && e.Stale {
			refused[e.id()] = e
		}
		if w, ok := refused[e.id()]; ok && e.What == eventLook && e.Held {
			found = append(found, fmt.Sprintf("%v holds %v after its token %#x was refused",
				e.id(), time.Duration(e.From-w.To), w.Token))
			delete(refused, e.id())
		}
	}
	return found
}

// disorder returns where marks are out of order. Only those count after which their writer
// still held: in the file's order, which no clock is part of, their tokens never fall.
func disorder(events []event) []string {
	lastHeld := make(map[turnID]int) // where in the file
	for i, e := range events {
		if e.What == eventLook && e.Held {
			lastHeld[e.id()] = i
		}
	}
	var found []string
	var highest event
	for i, e := range events {
		if e.What != eventMark || e.Token == 0 || lastHeld[e.id()] < i {
			continue
		}
		if e.Token < highest.Token {
			found = append(found, fmt.Sprintf("%v wrote with token %#x after %v with %#x, and both still held",
				e.id(), e.Token, highest.id(), highest.Token))
		} else {
			highest = e
		}
	}
	return found
}

// unorderedWrites returns the writes that the register has accepted out of order.
func unorderedWrites(writes map[int64]access) []string {
	accepted := make([]access, 0, len(writes))
	for _, w := range writes {
		if !w.stale {
			accepted = append(accepted, w)
		}
	}
	slices.SortFunc(accepted, func(a, b access) int { return cmp.Compare(a.at, b.at) })
	var found []string
	for i := 1; i < len(accepted); i++ {
		if accepted[i].token < accepted[i-1].token {
			found = append(found, fmt.Sprintf("token %#x accepted after %#x", accepted[i].token, accepted[i-1].token))
		}
	}
	return found
}
