package session

import "sync"

// idleWorkers is how many goroutines a session keeps that have nothing to do. One lock needs
// no more at a time.
const idleWorkers = 4

// workers run functions, each in a goroutine, and keep a few of those for the next: the stack
// of a new one is too small for a request, and to grow it takes longer than to hand the
// request over.
type workers struct {
	all  sync.WaitGroup
	next chan func()   // to one who has nothing to do
	idle chan struct{} // has a token of each of them
	end  <-chan struct{}
}

func (w *workers) init(end <-chan struct{}) {
	w.next, w.idle, w.end = make(chan func()), make(chan struct{}, idleWorkers), end
}

// do runs f, and returns at once. It must not be called once wait has been.
func (w *workers) do(f func()) {
	select {
	case w.next <- f:
	default:
		w.all.Go(func() { w.run(f) })
	}
}

func (w *workers) run(f func()) {
	for f != nil {
		f()
		f = w.another()
	}
}

// another waits for something to do; nil says that there is nothing for this one any more.
func (w *workers) another() func() {
	select {
	case w.idle <- struct{}{}:
		defer func() { <-w.idle }()
	default:
		return nil // others wait already
	}
	select {
	case f := <-w.next:
		return f
	case <-w.end:
		return nil
	}
}

// wait returns when all have ended, which they do with the session.
func (w *workers) wait() { w.all.Wait() }
