package queue

import (
	"errors"
	"sync"
)

// ending is something that comes once, with a cause, such as the end of a turn or of a lease. Its channel is made when
// somebody asks: most locks are held and released without one. The zero value has not come.
type ending struct {
	mu    sync.Mutex
	cause error         // nil until it comes
	done  chan struct{} // nil until somebody asks
	calls *endCall      // to be made when it comes: a list
}

type endCall struct {
	f    func()
	next *endCall
}

// errTold is the cause of an ending that needs none.
var errTold = errors.New("told")

// end has it come with a cause. It reports whether this was the first call; others do nothing.
func (e *ending) end(cause error) bool {
	e.mu.Lock()
	if e.cause != nil {
		e.mu.Unlock()
		return false
	}
	e.cause = cause
	if e.done != nil {
		close(e.done)
	}
	calls := e.calls
	e.calls = nil
	e.mu.Unlock()
	for ; calls != nil; calls = calls.next {
		calls.f()
	}
	return true
}

// why returns the cause, or nil if it has not come.
func (e *ending) why() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause
}

// wait returns a channel that is closed when it comes.
func (e *ending) wait() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done == nil {
		if e.done = make(chan struct{}); e.cause != nil {
			close(e.done)
		}
	}
	return e.done
}

// after has f called when it comes, at once if it has come. f must not block. stop has f forgotten.
func (e *ending) after(f func()) (stop func()) {
	e.mu.Lock()
	if e.cause != nil {
		e.mu.Unlock()
		f()
		return func() {}
	}
	defer e.mu.Unlock()
	call := &endCall{f, e.calls}
	e.calls = call
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for at := &e.calls; *at != nil; at = &(*at).next {
			if *at == call {
				*at = call.next
				return
			}
		}
	}
}
