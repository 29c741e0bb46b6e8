//go:build linux

package nemesis

import "math"

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

// down reports whether a writer was seen as a reader later.
func (s span) down() bool { return s.firstRead.Held }

// spans returns the holds that were ever seen held, by the lock of those that a contender can take.
func spans(events []event, deaths map[lifeID]int64) map[int][]span {
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
			if e.Weight > 0 && s.last.Weight == 0 {
				s.lastAlone, s.firstRead = s.last, e
			}
			s.last = e
		case e.What == eventLook, e.What == eventFree:
			s.ended = min(s.ended, e.To)
		case e.What == eventToken:
			s.token = e.Token
		}
	}
	all := make(map[int][]span)
	for _, s := range found {
		all[s.Of] = append(all[s.Of], *s)
	}
	return all
}
