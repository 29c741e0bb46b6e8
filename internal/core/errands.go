package core

import "sync"

// errands are functions that one goroutine calls, in order. It ends when there are no more.
type errands struct {
	mu      sync.Mutex
	waiting []func()
	running bool
}

func (e *errands) add(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = append(e.waiting, f)
	if !e.running {
		e.running = true
		go e.run()
	}
}

func (e *errands) run() {
	for {
		e.mu.Lock()
		next := e.waiting
		e.waiting = nil
		e.running = len(next) > 0
		e.mu.Unlock()
		if len(next) == 0 {
			return
		}
		for _, f := range next {
			f()
		}
	}
}
