package session

import "context"

// Trace is a set of hooks, each of which may be nil. They are called on the path
// of the work they tell of, by any number of goroutines at once: they must be
// quick and must not call back into this module.
//
// A hook that begins something returns the context to go on with, and a function
// that is called once when the thing has ended, with its outcome; that function
// may be nil.
//
// A hook should not panic. One that does, or that calls runtime.Goexit, in the goroutine of
// a caller of this module ends the call, and what the call held or was waiting for is given
// up. In a goroutine of the module a panic ends the program.
type Trace struct {
	// Traceparent returns what to put into a contender's node data as its W3C
	// traceparent; "" for none. It is called before each acquisition's first node is made. A
	// node that goroutines of this process hand on to each other has no traceparent, whatever
	// it returns.
	Traceparent func(ctx context.Context) string

	// Request surrounds one request to the server, each try on its own.
	Request func(ctx context.Context, r RequestInfo) (context.Context, func(error))

	// Watch surrounds a contender's wait for nodes ahead of it, while one of them is the
	// nearest that stands. When that node has gone, and the contender goes on waiting for
	// others, the call has ended and another begins.
	Watch func(ctx context.Context, w WatchInfo) (context.Context, func(error))

	// Acquire surrounds an acquisition, from the call to the grant or the error.
	Acquire func(ctx context.Context, a AcquireInfo) (context.Context, func(AcquireResult))

	// Release surrounds a release, from the call to its confirmation; that of a lost
	// hold too, whose cause is the outcome. holder is the holder's context: that of the
	// release may come from elsewhere, or from nowhere, since Unlock takes none.
	Release func(ctx, holder context.Context, h HoldInfo) (context.Context, func(error))

	// Hold is called at a grant, with the holder's context; the returned function
	// at the end of the hold, with nil for a release and the cause for a loss.
	Hold func(ctx context.Context, h HoldInfo) func(error)

	// Loss is called when a hold is lost, with the holder's context.
	Loss func(ctx context.Context, h HoldInfo, cause error)

	// Retry is called when a request, or an acquisition, is about to be tried again.
	Retry func(ctx context.Context, r RetryInfo)

	// State is called at each change of the manager's state, in order.
	State func(Change)
}

// RequestInfo describes one request.
type RequestInfo struct {
	Op     string // ZooKeeper's name: create, getChildren, getData, delete, sync …
	Chroot string // the path of the connect string; "/" if it has none
	Path   string // below the chroot
	Server string // host:port, as in the connect string, of the connection; "" while unknown
	Peer   string // its address: ip:port, or what a dialer of [WithDialer] was given
}

// RetryInfo describes what is tried again.
type RetryInfo struct {
	Op    string // of the request; "acquire" for an acquisition that lost its session or its node
	Try   int    // how many there were: 1 after the first
	Cause error  // how the last one ended
}

// WatchInfo describes a wait, or the part of it during which one node is the nearest ahead.
type WatchInfo struct {
	Chroot string // the path of the connect string; "/" if it has none
	Path   string // the node whose end is waited for
	Data   []byte // that node's data; not to be changed
	Nodes  int    // how many nodes ahead are watched, this one among them
}

// AcquireInfo describes what is asked for.
type AcquireInfo struct {
	Kind   string // mutex, unfair, read, write, semaphore; gate: before one in Curator's layout
	Chroot string // the path of the connect string; "/" if it has none
	Path   string // the lock's directory
	Try    bool   // a try, which does not wait
}

// AcquireResult describes how an acquisition ended.
type AcquireResult struct {
	Err      error
	Busy     bool // a try that found the lock taken; Err is nil then
	Position int  // contenders ahead at entry; -1 if it did not get that far, or made no node
	Attempts int  // nodes made: more than 1 after a lost session or node; 0 where one was handed on
}

// HoldInfo describes a hold.
type HoldInfo struct {
	Kind   string
	Chroot string // the path of the connect string; "/" if it has none
	Path   string // the lock's directory
	Node   string // the contender's node
}

// traceRequest calls the hook for a request and returns what to call at its end.
func (s *Session) traceRequest(ctx context.Context, info RequestInfo) func(error) {
	if s.cfg.trace.Request == nil {
		return endNothing
	}
	info.Chroot = s.cfg.outward("/")
	s.mu.Lock()
	info.Server, info.Peer = s.link.server, s.link.peer
	s.mu.Unlock()
	if _, done := s.cfg.trace.Request(ctx, info); done != nil {
		return done
	}
	return endNothing
}

func endNothing(error) {}

// traceRetry calls the hook for a request that is tried again.
func (s *Session) traceRetry(ctx context.Context, info RequestInfo, try int, cause error) {
	if s.cfg.trace.Retry != nil {
		s.cfg.trace.Retry(ctx, RetryInfo{Op: info.Op, Try: try, Cause: cause})
	}
}

// lifeWith returns the session's life with the values of ctx, so that the hooks for what
// goes on in the background know on whose behalf it does. Without hooks it costs nothing.
func (s *Session) lifeWith(ctx context.Context) context.Context {
	if s.cfg.trace.Request == nil && s.cfg.trace.Retry == nil {
		return s.life
	}
	return valued{s.life, ctx}
}

// valued is a context with further values.
type valued struct {
	context.Context
	values context.Context
}

func (v valued) Value(key any) any {
	// Its own come first: among them is what package context finds its parent by.
	if own := v.Context.Value(key); own != nil {
		return own
	}
	return v.values.Value(key)
}
