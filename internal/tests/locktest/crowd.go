package locktest

import (
	"bytes"
	"context"
	"regexp"
	"runtime"
	"sync"
	"testing/synctest"
	"time"
)

// A referee counts holders.
type referee struct {
	*world
	mu            sync.Mutex
	holds, rivals int
}

// in is called at a grant, and out before the release.
func (r *referee) in(rival bool, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rival {
		r.rivals += by
	} else {
		r.holds += by
	}
	most := r.subject.Holders
	if r.rivals > 1 || r.rivals == 1 && r.holds > 0 || most > 0 && r.holds > most {
		r.Errorf("%d holders and %d rivals at a time", r.holds, r.rivals)
	}
}

// Goroutines of several processes, each with several objects, exclude each other as far as the lock says so, and all of
// them get it.
func crowd(w *world) {
	const rounds = 3
	ref := &referee{world: w}
	var all sync.WaitGroup
	contend := func(p *process, way way, rival bool) {
		all.Go(func() {
			for range rounds {
				h, err := way.take(w.Context())
				if err != nil {
					w.Errorf("%s: %v", way.name, err)
					return
				}
				ref.in(rival, 1)
				time.Sleep(time.Millisecond)
				w.Want("while it is held", h.err(), nil)
				ref.in(rival, -1)
				w.Want("release", h.end(), nil)
			}
		})
	}
	var processes []*process
	for range 3 {
		p := w.process()
		processes = append(processes, p)
		for _, p := range []*process{p, w.object(p.m)} {
			for _, way := range p.waiting() {
				contend(p, way, false)
			}
		}
		r := w.rival()
		contend(r, r.ways()[0], true)
	}
	all.Wait()
	w.usable(processes...)
}

// Processes get the lock in the order in which they came, without the one that has given up.
func order(w *world) {
	var processes []*process
	for range 6 {
		processes = append(processes, w.process())
	}
	w.wantOrder(processes)
}

// So do the goroutines of a process, whether they share a place or not.
func orderInProcess(w *world) {
	if w.subject.Campaigns {
		return // an election has no second Run
	}
	p := w.process()
	w.wantOrder([]*process{p, p, p, p, p, p})
}

func (w *world) wantOrder(processes []*process) {
	w.Helper()
	const quits = 2
	rival := w.rival()
	release := rival.holds()
	grants := make(chan int, len(processes))
	ctx, cancel := context.WithCancel(w.Context())
	var all sync.WaitGroup
	for i, p := range processes {
		ctx := ctx
		if i != quits {
			ctx = w.Context()
		}
		all.Go(func() {
			ways := p.waiting()
			h, err := ways[i%len(ways)].take(ctx)
			if i == quits {
				w.Want("the one that gives up", err, context.Canceled)
				return
			}
			if err != nil {
				w.Errorf("contender %d: %v", i, err)
				return
			}
			grants <- i
			time.Sleep(time.Second)
			w.Want("release", h.end(), nil)
		})
		synctest.Wait()
	}
	cancel()
	w.Pass(time.Second)
	release()
	all.Wait()
	close(grants)
	var got []int
	for i := range grants {
		got = append(got, i)
	}
	want := []int{0, 1, 3, 4, 5}
	if len(got) != len(want) {
		w.Fatalf("grants %v, want %v", got, want)
	}
	for at, i := range got {
		if most := w.subject.Holders; most > 0 && i >= want[min(at+most, len(want))-1]+1 { // those that hold together come in any order
			w.Fatalf("grants %v, want %v", got, want)
		}
	}
	w.usable(processes...)
	w.usable(rival)
}

// After many acquisitions, most of which were cancelled or busy, nothing is left: no node, no watch, no goroutine.
func leaks(w *world) {
	const (
		first, more = 50, 200
		some        = 5 // a manager gets a few workers, and a session a watch on the limit of a semaphore
	)
	p, rival := w.object(w.dial()), w.rival()
	acquire := func(i int) {
		way := p.ways()[i%len(p.ways())]
		release := func() {}
		if i%2 == 0 {
			release = rival.holds()
		}
		ctx, cancel := context.WithCancel(w.Context())
		c := way.begin(ctx)
		if i%3 == 0 {
			synctest.Wait()
		}
		if i%5 != 0 || i%2 == 0 {
			cancel()
		}
		if h, err := c.wait(); err == nil {
			_ = h.end() // which is the error of the function for a Do
		}
		cancel()
		release()
	}
	acquisitions := func(n int) (watches, running int) {
		for i := range n {
			acquire(i)
		}
		w.gone("after many acquisitions", 0)
		w.Pass(settling)
		return w.Watches(), w.goroutines()
	}
	watches, running := acquisitions(first)
	moreWatches, moreRunning := acquisitions(more)
	if moreWatches > watches+some {
		w.Errorf("%d watches, and %d before", moreWatches, watches)
	}
	if moreRunning > running+some {
		w.Errorf("%d goroutines, and %d before", moreRunning, running)
	}
	w.usable(p, rival)
}

// bubbleName is the part of a goroutine's first line that names its bubble.
var bubbleName = regexp.MustCompile(`synctest bubble \d+`)

// goroutines returns how many goroutines of this bubble there are. Other subjects run beside it.
func (w *world) goroutines() int {
	w.Helper()
	stacks := make([]byte, 1<<22)
	name := bubbleName.Find(stacks[:runtime.Stack(stacks, false)])
	if name == nil {
		w.Fatal("the stack does not tell the bubble")
	}
	n := 0
	for line := range bytes.Lines(stacks[:runtime.Stack(stacks, true)]) {
		if bytes.HasPrefix(line, []byte("goroutine ")) && bytes.Equal(bubbleName.Find(line), name) {
			n++
		}
	}
	return n
}
