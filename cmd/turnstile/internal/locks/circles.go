package locks

import (
	"path"
	"slices"
	"strings"
)

// Stuck returns the contenders that may wait for each other in a circle, or wait behind one: none of them gets its lock, even if
// all others go on and give theirs up. All nodes must have been read. The result has the paths of these contenders, and for those
// that wait the contenders that they wait behind.
//
// The servers do not say which goroutine holds a lock and waits for another. A contender of the same session may be the same
// task if their labels or traces say so, or do not say otherwise: a node that several goroutines share has none. So a circle is
// never certain.
func Stuck(all []*Lock) map[string][]Contender {
	waits := map[string][]Contender{} // by session: what waits, of those that may be stuck
	for _, l := range all {
		for _, c := range l.Contenders {
			if !c.Holds && c.Known && !c.ByHand {
				waits[c.Session] = append(waits[c.Session], c)
			}
		}
	}
	// A contender stays if it waits, or if it holds its lock, now or later, while its task waits for another one.
	stays := func(c Contender) bool {
		return slices.ContainsFunc(waits[c.Session], func(w Contender) bool {
			return w.Path == c.Path || SameTask(c, w)
		})
	}
	for changed := true; changed; {
		changed = false
		for _, l := range all {
			for i, c := range l.Contenders {
				same := func(w Contender) bool { return w.Path == c.Path }
				if slices.ContainsFunc(waits[c.Session], same) && len(l.behind(i, stays)) == 0 {
					waits[c.Session], changed = slices.DeleteFunc(waits[c.Session], same), true
				}
			}
		}
	}
	stuck := map[string][]Contender{}
	for _, l := range all {
		for i, c := range l.Contenders {
			if stays(c) {
				stuck[c.Path] = nil
			}
			if stays(c) && !c.Holds {
				stuck[c.Path] = l.behind(i, stays)
			}
		}
	}
	return stuck
}

// behind returns the contenders ahead of a waiter that do not go away, if they keep it waiting.
func (l *Lock) behind(i int, stays func(Contender) bool) (ahead []Contender) {
	taken, me := 0, l.Contenders[i]
	for _, c := range l.Contenders[:i] {
		if stays(c) && (l.Kind != RWLock || me.Mode == "write" || c.Mode == "write") {
			ahead = append(ahead, c)
			taken += c.Leases
		}
	}
	switch {
	case l.Kind == Curator || l.Kind == Conflict: // the servers do not know the limit, or nobody knows the order
		return nil
	case l.Kind == Semaphore && taken+me.Leases <= l.Limit:
		return nil
	}
	return ahead
}

// SameTask reports whether two contenders of one session may be those of one task. At one lock that is not so if they do not say it:
// goroutines of one process contend for it.
func SameTask(a, b Contender) bool {
	one, other := taskName(a), taskName(b)
	if path.Dir(a.Path) == path.Dir(b.Path) {
		return one == other && one != ""
	}
	return one == other || one == "" || other == ""
}

// taskName is the trace of a contender, or else its label. Acquisitions of one trace have spans of their own.
func taskName(c Contender) string {
	if parts := strings.Split(c.Traceparent, "-"); len(parts) == 4 {
		return parts[1]
	}
	return c.Label
}
