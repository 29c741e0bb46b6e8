//go:build linux

package nemesis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

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

// down reports whether a writer was seen as a reader later.
func (s span) down() bool { return s.firstRead.Held }

func (s span) String() string {
	what := ""
	if s.Weight > 0 {
		what = fmt.Sprintf(", weight %d,", s.Weight)
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
	all := make([]span, 0, len(found))
	for _, s := range found {
		all = append(all, *s)
	}
	sortSpans(all)
	return all
}

func sortSpans(all []span) {
	slices.SortFunc(all, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.begin(), b.begin()), cmp.Compare(a.id.String(), b.id.String()))
	})
}

// overlaps returns the holds that began while, with them, more was held than may be. Of those that were held
// then, the last was let in after the latest of their views. A writer that becomes a reader is one until its
// last look as a writer, and a reader after that.
func overlaps(all []span, changes []resize, first int) []string {
	all = slices.Clone(all)
	for i, s := range all {
		if s.down() {
			reader := s
			reader.first, reader.Weight = s.lastAlone, 1
			all[i].last = s.lastAlone
			all = append(all, reader)
		}
	}
	sortSpans(all)
	var found []string
	var beside []span
	for _, s := range all {
		if s.end() <= s.begin() {
			continue // one instant, which the model looks at
		}
		beside = append(slices.DeleteFunc(beside, func(o span) bool { return o.end() <= s.begin() }), s)
		sum, view, alone := 0, int64(0), false
		for _, o := range beside {
			sum, view, alone = sum+o.Weight, max(view, o.View), alone || o.Weight == 0
		}
		if limit := highest(changes, first, view, s.begin()); alone && len(beside) > 1 || sum > limit {
			found = append(found, fmt.Sprintf("held at once for %.3f s, weight %d of %d: %v", together(beside, s), sum, limit, beside))
		}
	}
	return found
}

// together returns for how many seconds a hold and another are held at once, at most.
func together(beside []span, s span) float64 {
	longest := int64(0)
	for _, o := range beside {
		if o.id != s.id {
			longest = max(longest, min(o.end(), s.end())-s.begin())
		}
	}
	return float64(longest) / 1e9
}
