package callout

// idleWorkers is how many idle goroutines a manager keeps. One lock needs no more at a time.
const idleWorkers = 4

// workers run functions in goroutines, those of the sessions and those of the user, and keep a few idle
// goroutines for the next functions. The stack of a new goroutine is too small for a request, and growing
// it takes longer than handing the request to an idle one.
type workers struct {
	next chan func()   // to an idle goroutine
	idle chan struct{} // holds one token for each idle goroutine
	end  <-chan struct{}
}

func (w *workers) init(end <-chan struct{}) {
	w.next, w.idle, w.end = make(chan func()), make(chan struct{}, idleWorkers), end
}

// do runs f in a goroutine, and returns at once.
func (w *workers) do(f func()) {
	select {
	case w.next <- f:
	default:
		go w.run(f)
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
