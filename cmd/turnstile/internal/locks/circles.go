package locks

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Circle is a group of tasks of which each waits for another one of the group, so that none of them can go on.
//
// A task is what the nodes tell of it: contenders of one session with the same trace, or else with the same label. If
// they have neither, all contenders of the session count as one task, although they may be goroutines that do not wait for
// each other.
type Circle struct {
	Certain bool   `json:"certain"` // all tasks are told apart by traces or labels
	Waits   []Wait `json:"waits"`   // in the order of their locks
}

// Wait is a contender that waits for a lock, and one ahead of it that belongs to a task of the circle.
type Wait struct {
	Lock   string    `json:"lock"`
	Waiter Contender `json:"waiter"`
	Behind Contender `json:"behind"`
}

// task is who contends. See Circle.
type task struct{ session, name string }

// taskOf returns the task of a contender. It returns false if that is not known.
func taskOf(c Contender) (task, bool) {
	if !c.Known || c.ByHand {
		return task{}, false
	}
	name := c.Label
	// Version, trace, span and flags. Acquisitions of one trace have spans of their own.
	if parts := strings.Split(c.Traceparent, "-"); len(parts) == 4 {
		name = parts[1]
	}
	return task{c.Session, name}, true
}

// wait is a Wait with the tasks, and whether the waiter can go although the one ahead does not.
type wait struct {
	Wait
	from, to task
	lock     *Lock
}

// Circles finds the circles among the contenders of some locks, all of which have been read. The locks were read one after
// the other, so a circle exists only if all of its contenders are still there: see Confirm.
func Circles(all []*Lock) []Circle {
	var waits []wait
	for _, l := range all {
		waits = append(waits, waitsIn(l)...)
	}
	g := newGraph(stuck(waits))
	var out []Circle
	for _, group := range g.groups() {
		if c := g.circle(group); len(c.Waits) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// waitsIn returns for each waiter the contenders that it waits for directly: those that are not behind others of them.
func waitsIn(l *Lock) (out []wait) {
	for i, c := range l.Contenders {
		from, ok := taskOf(c)
		if c.Holds || !ok {
			continue
		}
		for _, ahead := range directlyAhead(l, i) {
			to, ok := taskOf(ahead)
			if !ok || from == to && from.name == "" {
				continue // goroutines of one process that contend for one lock are no circle
			}
			out = append(out, wait{Wait{l.Path, c, ahead}, from, to, l})
		}
	}
	return out
}

// directlyAhead returns the contenders that the waiter at an index waits for directly.
func directlyAhead(l *Lock, i int) []Contender {
	ahead := l.Contenders[:i]
	if len(ahead) == 0 {
		return nil
	}
	last := len(ahead) - 1
	switch l.Kind {
	case Mutex, Election:
		return ahead[last:]
	case RWLock:
		from := last
		for from > 0 && ahead[from].Mode == "read" {
			from--
		}
		if l.Contenders[i].Mode == "read" { // readers wait for no readers
			return ahead[from : from+1]
		}
		return ahead[from:]
	case Semaphore:
		if l.Limit == 0 {
			return nil
		}
		if !ahead[last].Holds {
			return ahead[last:]
		}
		return ahead // the first waiter waits for some of the holders
	case Curator, Kazoo, None, Conflict: // the servers do not know the limit, or nobody knows the order
	}
	return nil
}

// stuck leaves out the waits that end if all tasks go on that wait for nobody, then those that wait for them, and so on.
func stuck(waits []wait) []wait {
	left := map[task]int{}       // how many waits of a task do not end; a task with none is not blocked
	behind := map[task][]int{}   // the waits for a task
	waiter := map[string][]int{} // the waits of a contender, by its path
	ended := make([]bool, len(waits))
	for i, w := range waits {
		left[w.from]++
		behind[w.to] = append(behind[w.to], i)
		waiter[w.Waiter.Path] = append(waiter[w.Waiter.Path], i)
	}
	var free []task
	end := func(i int) {
		if w := waits[i]; !ended[i] {
			ended[i] = true
			if left[w.from]--; left[w.from] == 0 {
				free = append(free, w.from)
			}
		}
	}
	for to := range behind {
		if left[to] == 0 {
			free = append(free, to)
		}
	}
	for len(free) > 0 {
		t := free[len(free)-1]
		free = free[:len(free)-1]
		for _, i := range behind[t] {
			end(i)
			for _, j := range waiter[waits[i].Waiter.Path] {
				if hasRoom(waits[j], left) {
					end(j)
				}
			}
		}
	}
	var out []wait
	for i, w := range waits {
		if !ended[i] {
			out = append(out, w)
		}
	}
	return out
}

// hasRoom reports whether the first waiter of a semaphore gets its leases when the holders that are not blocked have gone.
func hasRoom(w wait, left map[task]int) bool {
	if w.lock.Kind != Semaphore || !w.Behind.Holds {
		return false
	}
	taken := w.Waiter.Leases
	for _, h := range w.lock.Holders() {
		if t, ok := taskOf(h); !ok || left[t] > 0 {
			taken = sum(taken, h.Leases)
		}
	}
	return taken <= w.lock.Limit
}

// graph has the tasks that are stuck, and what they wait for.
type graph struct {
	tasks []task // in the order in which they were found
	waits map[task][]wait
}

func newGraph(waits []wait) *graph {
	g := &graph{waits: map[task][]wait{}}
	for _, w := range waits {
		if g.waits[w.from] == nil {
			g.tasks = append(g.tasks, w.from)
		}
		g.waits[w.from] = append(g.waits[w.from], w)
	}
	return g
}

// groups returns the strongly connected components, by Tarjan's algorithm, with a stack of its own instead of recursion.
func (g *graph) groups() (out [][]task) {
	index, low, on := map[task]int{}, map[task]int{}, map[task]bool{}
	var open []task
	type frame struct {
		t    task
		next int
	}
	for _, root := range g.tasks {
		if _, seen := index[root]; seen {
			continue
		}
		calls := []frame{{root, 0}}
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			if f.next == 0 {
				index[f.t], low[f.t] = len(index), len(index)
				open, on[f.t] = append(open, f.t), true
			} else if to := g.waits[f.t][f.next-1].to; on[to] {
				low[f.t] = min(low[f.t], low[to])
			}
			if f.next < len(g.waits[f.t]) {
				to := g.waits[f.t][f.next].to
				f.next++
				if _, seen := index[to]; !seen {
					calls = append(calls, frame{to, 0})
				}
				continue
			}
			if low[f.t] == index[f.t] {
				at := slices.Index(open, f.t)
				out = append(out, slices.Clone(open[at:]))
				for _, t := range open[at:] {
					on[t] = false
				}
				open = open[:at]
			}
			calls = calls[:len(calls)-1]
		}
	}
	return out
}

// circle returns the waits within a group. It has none if the group is one task that does not wait for itself.
func (g *graph) circle(group []task) Circle {
	in := map[task]bool{}
	for _, t := range group {
		in[t] = true
	}
	c := Circle{Certain: true, Waits: []Wait{}}
	for _, t := range group {
		c.Certain = c.Certain && t.name != ""
		told := map[string]bool{} // paths of waiters: one wait for each
		for _, w := range g.waits[t] {
			if in[w.to] && !told[w.Waiter.Path] {
				told[w.Waiter.Path] = true
				c.Waits = append(c.Waits, w.Wait)
			}
		}
	}
	slices.SortFunc(c.Waits, func(a, b Wait) int {
		if n := strings.Compare(a.Lock, b.Lock); n != 0 {
			return n
		}
		return int(a.Waiter.Sequence) - int(b.Waiter.Sequence)
	})
	return c
}

// Confirm returns the circles of which all contenders hold and wait in a later reading of the same locks as they did
// before. So there was a moment, between the readings, at which all of them did.
func Confirm(circles []Circle, later []*Lock) []Circle {
	still := map[string]bool{} // by path; whether it holds
	for _, l := range later {
		for _, c := range l.Contenders {
			still[c.Path] = c.Holds
		}
	}
	same := func(c Contender) bool {
		holds, there := still[c.Path]
		return there && holds == c.Holds
	}
	return slices.DeleteFunc(slices.Clone(circles), func(c Circle) bool {
		return slices.ContainsFunc(c.Waits, func(w Wait) bool { return !same(w.Waiter) || !same(w.Behind) })
	})
}

// Confirmed reads the locks of circles again, and returns those circles that are still there.
func (t *Tree) Confirmed(ctx context.Context, circles []Circle) ([]Circle, error) {
	var later []*Lock
	read := map[string]bool{}
	for _, c := range circles {
		for _, w := range c.Waits {
			if read[w.Lock] {
				continue
			}
			read[w.Lock] = true
			l, err := t.Read(ctx, w.Lock, Holders)
			switch {
			case errors.Is(err, zk.ErrNoNode): // all have left
			case err != nil:
				return nil, err
			default:
				later = append(later, l)
			}
		}
	}
	return Confirm(circles, later), nil
}
