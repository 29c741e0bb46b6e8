package locks

import (
	"path"
	"slices"
	"strings"
)

// Wait is a contender that waits for a lock behind another one.
type Wait struct {
	Waiter, Behind Contender
	Lock           *Lock
}

// Circle returns what a circle of a lock may be: the waits from its holders back to it.
//
// The servers do not say which goroutine holds a lock and waits for another. A contender of the same session may be the same
// task if their labels or traces say so, or do not say otherwise: a node that several goroutines share has none. So a circle is
// never certain.
func Circle(l *Lock, all []*Lock) []Wait {
	stuck, seen := stuck(all), map[string]bool{}
	// A contender may be what waits elsewhere. Follow that, until the way comes back to this lock.
	var follow func(c Contender) []Wait
	follow = func(c Contender) []Wait {
		for _, w := range stuck {
			if w.Waiter.Session != c.Session || seen[w.Waiter.Path+w.Behind.Path] || !sameTask(c, w.Waiter) {
				continue
			}
			seen[w.Waiter.Path+w.Behind.Path] = true
			if w.Lock.Path == l.Path {
				return []Wait{w}
			}
			if rest := follow(w.Behind); rest != nil {
				return append([]Wait{w}, rest...)
			}
		}
		return nil
	}
	for _, holder := range l.Holders() {
		if waits := follow(holder); waits != nil {
			return waits
		}
	}
	return nil
}

// stuck returns the waits of contenders that may wait for each other in a circle, or wait behind one: none of them gets its
// lock, even if all others go on and give theirs up.
func stuck(all []*Lock) (out []Wait) {
	waits := map[int64][]Contender{} // by session: what waits, of those that may be stuck
	for _, l := range all {
		for _, c := range l.Contenders {
			if !c.Holder && !c.ByHand() {
				waits[c.Session] = append(waits[c.Session], c)
			}
		}
	}
	// A contender stays if it waits, or if it holds its lock, now or later, while its task waits for another one.
	stays := func(c Contender) bool {
		return slices.ContainsFunc(waits[c.Session], func(w Contender) bool { return w.Path == c.Path || sameTask(c, w) })
	}
	for changed := true; changed; {
		changed, out = false, nil
		for _, l := range all {
			for i, c := range l.Contenders {
				at := slices.IndexFunc(waits[c.Session], func(w Contender) bool { return w.Path == c.Path })
				if at < 0 {
					continue
				}
				behind := l.behind(i, stays)
				if len(behind) == 0 {
					waits[c.Session], changed = slices.Delete(waits[c.Session], at, at+1), true
				}
				for _, b := range behind {
					out = append(out, Wait{c, b, l})
				}
			}
		}
	}
	return out
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
	// Of Curator's semaphores the servers do not know the limit, and in a conflict nobody knows the order.
	if l.Kind == Curator || l.Kind == Conflict || l.Kind == Semaphore && taken+me.Leases <= l.Limit {
		return nil
	}
	return ahead
}

// sameTask reports whether two contenders of one session may be those of one task. At one lock that is not so if they do
// not say it: goroutines of one process contend for it.
func sameTask(a, b Contender) bool {
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
