package session

import "sync"

// idleWorkers is how many idle goroutines a session keeps. One lock needs no more at a time.
const idleWorkers = 4

// workers run functions in goroutines, and keep a few idle goroutines for the next functions. The
// stack of a new goroutine is too small for a request, and growing it takes longer than handing
// the request to an idle one.
type workers struct {
	all  sync.WaitGroup
	next chan func()   // to an idle goroutine
	idle chan struct{} // holds one token for each idle goroutine
	end  <-chan struct{}
}

func (w *workers) init(end <-chan struct{}) {
	w.next, w.idle, w.end = make(chan func()), make(chan struct{}, idleWorkers), end
}

// do runs f in a goroutine, and returns at once. It must not be called after wait.
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

// another waits for the next function. It returns nil if the goroutine should end.
func (w *workers) another() func() {
	select {
	case w.idle <- struct{}{}:
		defer func() { <-w.idle }()
	default:
		return nil // enough goroutines are idle
	}
	select {
	case f := <-w.next:
		return f
	case <-w.end:
		return nil
	}
}

// wait returns when all goroutines have ended, which they do when the session ends.
func (w *workers) wait() { w.all.Wait() }
