package outbox

import "bytes"

// Many callers may want the list of one directory at the same time: thousands that contend for one lock. Each of
// them would get a list with all of the others. So a list steps aside if it cannot leave at once, or if, once calls
// have waited for room, others of its directory wait behind it. Two things happen while it waits:
//
//   - Calls of the same directory pass, at most mostCalls of them. These are the creates of other contenders.
//   - Other callers that want the same list join it, once all calls of the directory that came before theirs have left.
//     So a list shows a caller everything that it would have shown had it left alone.
//
// It leaves once, for all callers that have joined it and still want it. So a burst of n contenders costs far fewer
// than n lists.

// listings are the lists of one directory that wait aside, in the order in which they came.
type listings struct {
	all  []aList
	next int // which of all leaves next: see due
}

// aList is a request for a list, and the callers that want it.
type aList struct {
	callers []Call // the first of them has the frame
	read    read
	since   int // how many calls of the directory had left when it stepped aside
}

// join adds a caller to a list that waits aside, if it is the same.
func (l *listings) join(one *Call) bool {
	for i := range l.all {
		a := &l.all[i]
		if bytes.Equal(a.callers[0].Frame[8:], one.Frame[8:]) { // behind the length and the number
			a.callers = append(a.callers, *one)
			return true
		}
	}
	return false
}

// aside makes a list wait aside. left is how many calls of the directory have left.
func (l *listings) aside(one Call, r read, left int) {
	l.all = append(l.all, aList{[]Call{one}, r, left})
}

// due finds a list that may leave now: one of which no answer of unknown length is on its way, if nothing else of the
// directory waits or if enough calls have passed it.
func (l *listings) due(e *expected, idle bool, left int) bool {
	for i, one := range l.all {
		if !e.first[uint64(one.read)] && (idle || left-one.since >= mostCalls) {
			l.next = i
			return true
		}
	}
	return false
}

// pop removes the list that due has found, and returns it as one call.
func (l *listings) pop() Call {
	one := l.all[l.next].together()
	l.remove()
	return one
}

func (l *listings) remove() {
	n := copy(l.all[l.next:], l.all[l.next+1:])
	l.all[l.next+n] = aList{}
	if l.all = l.all[:l.next+n]; len(l.all) == 0 {
		l.all = nil
	}
}

// together returns the request as one call for all callers. They get the same answer, one after the other.
func (a aList) together() Call {
	first := a.callers[0]
	if len(a.callers) == 1 {
		return first
	}
	return Call{Frame: first.Frame, Check: first.Check, Done: func(r Reply) {
		for _, one := range a.callers {
			one.Done(r)
		}
	}}
}

// trim drops callers that have given up from the fronts of the lists, and the lists that nobody wants any more.
func (l *listings) trim(drop func(Call)) {
	for i := len(l.all) - 1; i >= 0; i-- {
		a := &l.all[i]
		for len(a.callers) > 0 && a.callers[0].gone() {
			drop(a.callers[0])
			a.callers[0] = Call{}
			a.callers = a.callers[1:]
		}
		if len(a.callers) == 0 {
			l.next = i
			l.remove()
		}
	}
}

// set replaces the callers of each list, and forgets the lists that nobody wants.
func (l *listings) set(wanted func([]Call) []Call) {
	var kept []aList
	for _, a := range l.all {
		if a.callers = wanted(a.callers); len(a.callers) > 0 {
			kept = append(kept, a)
		}
	}
	l.all = kept
}
