package session

import "context"

// Trace is a set of hooks, each of which may be nil. They are called on the path
// of the work they tell of, by any number of goroutines at once: they must be
// quick and must not call back into this module.
//
// A hook that begins something returns the context to go on with, and a function
// that is called once when the thing has ended, with its outcome; that function
// may be nil.
type Trace struct {
	// Traceparent returns what to put into a contender's node data as its W3C
	// traceparent; "" for none.
	Traceparent func(ctx context.Context) string

	// Request surrounds one request to the server, each try on its own.
	Request func(ctx context.Context, r RequestInfo) (context.Context, func(error))

	// Watch surrounds a contender's wait for nodes ahead of it.
	Watch func(ctx context.Context, w WatchInfo) (context.Context, func(error))

	// Acquire surrounds an acquisition, from the call to the grant or the error.
	Acquire func(ctx context.Context, a AcquireInfo) (context.Context, func(AcquireResult))

	// Release surrounds a release, from the call to its confirmation.
	Release func(ctx context.Context, h HoldInfo) (context.Context, func(error))

	// Hold is called at a grant, with the holder's context; the returned function
	// at the end of the hold, with nil for a release and the cause for a loss.
	Hold func(ctx context.Context, h HoldInfo) func(error)

	// Loss is called when a hold is lost, with the holder's context.
	Loss func(ctx context.Context, h HoldInfo, cause error)

	// State is called at each change of the manager's state, in order.
	State func(Change)
}

// RequestInfo describes one request.
type RequestInfo struct {
	Op     string // ZooKeeper's name: create, getChildren, getData, delete, sync …
	Path   string // without the chroot
	Server string // host:port that the connection goes to; "" while unknown
}

// WatchInfo describes a wait.
type WatchInfo struct {
	Path string // the node whose end is waited for
	Data []byte // that node's data; not to be changed
}

// AcquireInfo describes what is asked for.
type AcquireInfo struct {
	Kind string // mutex, read, write, semaphore
	Path string // the lock's directory
	Try  bool   // a try, which does not wait
}

// AcquireResult describes how an acquisition ended.
type AcquireResult struct {
	Err      error
	Busy     bool // a try that found the lock taken; Err is nil then
	Position int  // contenders ahead at entry; -1 if it did not get that far
	Attempts int  // nodes made: more than 1 after a lost session or node
}

// HoldInfo describes a hold.
type HoldInfo struct {
	Kind string
	Path string // the lock's directory
	Node string // the contender's node
}

// TraceHooks returns the hooks given with [WithTrace].
func (m *Manager) TraceHooks() *Trace { return &m.cfg.trace }
