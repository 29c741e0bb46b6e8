package wire

import "bytes"

// Many callers may want the list of one directory at the same time: thousands that contend for one lock. Each of
// them would get a list with all of the others. So a list that cannot leave at once steps aside, and two things
// happen while it waits:
//
//   - Calls behind it pass, at most mostCalls of them. These are the creates of other contenders.
//   - Other callers that want the same list join it, once all calls that came before theirs have left. So a list
//     shows a caller everything that it would have shown had it left alone.
//
// It leaves once, for all callers that have joined it. So a burst of n contenders costs far fewer than n lists.

// listings are the lists that wait aside, in the order in which they came.
type listings struct {
	all  []aList
	left int // how many calls have left the connection
	next int // which of all leaves next: see due
}

// aList is a request for a list, and the callers that want it.
type aList struct {
	Call
	read  read
	more  []func(Reply) // the callers that have joined
	since int           // how many calls had left when it stepped aside
}

// join adds a caller to a list that waits aside, if it is the same.
func (l *listings) join(one Call) bool {
	for i := range l.all {
		if bytes.Equal(l.all[i].Frame[8:], one.Frame[8:]) { // behind the length and the number
			l.all[i].more = append(l.all[i].more, one.Done)
			return true
		}
	}
	return false
}

// aside makes a list wait aside.
func (l *listings) aside(one Call, r read) {
	l.all = append(l.all, aList{one, r, nil, l.left})
}

// due finds a list that may leave now: one of which no answer of unknown length is on its way, if nothing else waits
// or if enough calls have passed it.
func (l *listings) due(e *expected, idle bool) bool {
	for i, one := range l.all {
		if !e.first[uint64(one.read)] && (idle || l.left-one.since >= mostCalls) {
			l.next = i
			return true
		}
	}
	return false
}

// first returns the list that due has found, as one call.
func (l *listings) first() Call { return l.all[l.next].together() }

// together returns the request as one call for all callers. They get the same answer, one after the other.
func (a aList) together() Call {
	if len(a.more) == 0 {
		return a.Call
	}
	return Call{a.Frame, a.Check, func(r Reply) {
		a.Done(r)
		for _, done := range a.more {
			done(r)
		}
	}}
}

// calls returns all lists that wait aside.
func (l *listings) calls() (all []Call) {
	for _, one := range l.all {
		all = append(all, one.together())
	}
	return all
}

// pop removes the list that due has found.
func (l *listings) pop() {
	n := copy(l.all[l.next:], l.all[l.next+1:])
	l.all[l.next+n] = aList{}
	if l.all = l.all[:l.next+n]; len(l.all) == 0 {
		l.all = nil
	}
}
