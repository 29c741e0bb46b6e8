package queue

import (
	"errors"
	"sync"
)

// ending is something that comes once, with a cause, such as the end of a lease. It takes two words as long as nobody
// asks, since a program can hold many locks.
type ending struct {
	mu    sync.Mutex
	state *endState // nil until it comes, or somebody asks
}

type endState struct {
	cause error // nil until it comes
	done  chan struct{}
	calls *endCall
}

type endCall struct {
	f    func()
	next *endCall
}

// errTold is the cause of an ending that needs none.
var errTold = errors.New("told")

var wasTold, wasReleased = hasCome(errTold), hasCome(ErrReleased)

func hasCome(cause error) *endState {
	s := &endState{cause: cause, done: make(chan struct{})}
	close(s.done)
	return s
}

// end reports whether this was the first call. Others do nothing.
func (e *ending) end(cause error) bool {
	var calls *endCall
	e.mu.Lock()
	s := e.state
	switch {
	case s == nil && cause == errTold: //nolint:errorlint // the cause itself
		e.state = wasTold
	case s == nil && cause == ErrReleased: //nolint:errorlint // as above
		e.state = wasReleased
	case s == nil:
		e.state = &endState{cause: cause}
	case s.cause != nil:
		e.mu.Unlock()
		return false
	default:
		s.cause = cause
		if s.done != nil {
			close(s.done)
		}
		calls, s.calls = s.calls, nil
	}
	e.mu.Unlock()
	for ; calls != nil; calls = calls.next {
		calls.f()
	}
	return true
}

func (e *ending) why() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == nil {
		return nil
	}
	return e.state.cause
}

func (e *ending) askLocked() *endState {
	if e.state == nil {
		e.state = new(endState)
	}
	return e.state
}

func (e *ending) wait() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.askLocked()
	if s.done == nil {
		if s.done = make(chan struct{}); s.cause != nil {
			close(s.done)
		}
	}
	return s.done
}

// after calls f when it comes, or at once if it has. f must not block.
func (e *ending) after(f func()) (stop func()) {
	e.mu.Lock()
	s := e.askLocked()
	if s.cause != nil {
		e.mu.Unlock()
		f()
		return func() {}
	}
	defer e.mu.Unlock()
	call := &endCall{f, s.calls}
	s.calls = call
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for at := &s.calls; *at != nil; at = &(*at).next {
			if *at == call {
				*at = call.next
				return
			}
		}
	}
}
