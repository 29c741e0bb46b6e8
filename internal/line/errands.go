package line

import "sync"

// Errands are functions that one goroutine calls, in order. There is a goroutine only while there are
// functions to call. If one of them ends the goroutine by runtime.Goexit, another goroutine goes on. The zero
// value has none.
type Errands struct {
	mu      sync.Mutex
	waiting Line[func()]
	running bool
}

// Add has f called after the others. It returns at once.
func (e *Errands) Add(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting.Push(f)
	if !e.running {
		e.running = true
		go e.run()
	}
}

func (e *Errands) run() {
	done := false
	defer func() {
		if !done {
			go e.run()
		}
	}()
	for f := e.next(); f != nil; f = e.next() {
		f()
	}
	done = true
}

func (e *Errands) next() func() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running = e.waiting.Len() > 0; !e.running {
		return nil
	}
	return e.waiting.Pop()
}
