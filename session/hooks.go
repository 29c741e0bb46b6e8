package session

import (
	"cmp"
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// Trace is a set of hooks, each of which may be nil. A hook runs in place, on the goroutine that has something to tell,
// and must not block: as with [net/http/httptrace], what calls it waits until it returns. Hooks run in any number of
// goroutines at once. No mutex of this module is held meanwhile, so a hook may look at locks and sessions (Err, Held,
// Remaining, State …), but it must not wait for a lock or a request.
//
// The hooks of a lost lock are the exception: Loss, and then the function that Hold has returned. One goroutine of the
// manager calls them, in the order of the losses. If one blocks, at most 65,536 losses wait, and the log tells of those
// that are dropped. A hook that blocks never makes a lock count as held past its time.
//
// A hook that begins something returns the context to go on with, and a function, which is called once with the
// outcome. Either may be nil. The context should end with the one that the hook got, and not before.
//
// Hooks change no request. Only what Traceparent returns is added to the data of a node.
type Trace struct {
	// Traceparent returns the W3C traceparent for the node data of a contender, or "". It is called before the first
	// node of each acquisition, and for AcquireInfo of hooks that come after these. A node that goroutines hand on to
	// each other has none.
	Traceparent func(ctx context.Context) string

	// Request surrounds one request to the server. Each try is a request of its own.
	Request func(ctx context.Context, r RequestInfo) (context.Context, func(error))

	// Watch surrounds a contender's wait for nodes ahead of it, for as long as the one that WatchInfo describes stands.
	// If that goes and the contender still waits for others, another call begins.
	Watch func(ctx context.Context, w WatchInfo) (context.Context, func(error))

	// Acquire surrounds an acquisition, from the call to the grant or the error. Each lock of a MultiLock of package
	// zklock is an acquisition, and those whose creates leave in one flight begin together.
	Acquire func(ctx context.Context, a AcquireInfo) (context.Context, func(AcquireResult))

	// Release surrounds a release, from the call to its confirmation. That of a lost hold ends with the cause of the
	// loss. holder is the holder's context. ctx is that of the release: Unlock takes none. Unlock returns before the
	// confirmation if that takes more than a second, without a connection, or with WithAsyncRelease. Then only this
	// hook and the log are told of a refusal.
	Release func(ctx, holder context.Context, h HoldInfo) (context.Context, func(error))

	// Hold is called at a grant, with the holder's context, of which queue.LeaseFrom returns the lease. The returned
	// function is called at the end of the hold, with nil for a release and the cause for a loss. A release calls it,
	// then the Release hook, and then hands the lock on or sends the delete.
	Hold func(ctx context.Context, h HoldInfo) func(error)

	// Loss is called when a hold is lost, with the holder's context, and before the function that Hold has returned.
	Loss func(ctx context.Context, h HoldInfo, cause error)

	// Retry is called before a request, or an acquisition, is tried again.
	Retry func(ctx context.Context, r RetryInfo)

	// Job is called when it is known what has become of a tick of a schedule.Job. If a function was called for the tick, that
	// is when it has returned and the record was written, and ctx is the function's. Otherwise it is at the end of Run, TryRun
	// or CatchUp, and ctx is that of the call. Job is also called once without an Outcome, by schedule.New.
	Job func(ctx context.Context, j JobInfo)

	// State is called at each change of the manager's state, in order.
	State func(Change)
}

// RequestInfo describes one request.
type RequestInfo struct {
	Op     string // ZooKeeper's name: create, getChildren, getData, delete, sync …
	Chroot string // the path of the connect string; "/" if it has none
	Path   string // below the chroot
	Server string // host:port of the connection, as in the connect string; "" if not known yet
	Peer   string // its address: ip:port, or the address given to the dialer of [WithDialer]
}

// RetryInfo describes a request or an acquisition that is tried again.
type RetryInfo struct {
	Op    string // of the request; "acquire" for an acquisition that lost its session or its node
	Try   int    // the number of tries so far: 1 after the first
	Cause error  // how the last try ended
}

// WatchInfo describes the part of a wait during which one node ahead stands: the holder's if that is known, else the
// nearest.
type WatchInfo struct {
	Chroot string // the path of the connect string; "/" if it has none
	Path   string // the node
	Nodes  int    // how many nodes ahead are watched, including this one
	Ahead  int    // how many nodes ahead the contender waits for, including those that it does not watch

	// Known returns what the wait knows of the node by now. ok is false while that is nothing, which takes a round
	// trip, and for ever if the client may not read the node. Known sends nothing, and may be called at any time.
	Known func() (n NodeInfo, ok bool)

	// Holds reports whether the wait knows that the node is a holder's, or was to its end. It may be called as Known
	// may.
	Holds func() bool
}

// NodeInfo is what the node of a contender says about it.
type NodeInfo struct {
	Data        []byte // a copy
	ID          string // who contends, as ID of a queue.Contender; "" if that is not known
	Label       string // the label of its acquisition, or ""
	Traceparent string // the W3C traceparent of its acquisition, or ""
	Session     int64  // the session that owns the node; 0 if it is not ephemeral
}

// AcquireInfo describes an acquisition.
type AcquireInfo struct {
	Kind   string // mutex, election, read, write or semaphore; gate: the lock that guards entry to a semaphore in Curator's layout
	Name   string // of the option WithName, such as that of package zklock; "" without it
	Chroot string // the path of the connect string; "/" if it has none
	Path   string // the lock's directory
	Try    bool   // the call does not wait
	Weight int    // how much it asks for: more than 1 for several leases of a semaphore at once
	Local  bool   // goroutines of this process hand the lock on to each other, and wait as one contender
	Label  string // the label of the acquisition, or ""

	// Traceparent is what the Traceparent hook of a Trace that comes before this one has returned, or "". A Trace of
	// [Manager.AddTrace] comes after those of the options.
	Traceparent string
}

// AcquireResult describes how an acquisition ended.
type AcquireResult struct {
	Err      error
	Busy     bool // Try found the lock taken; Err is nil then
	Position int  // contenders ahead at entry, or at the look of a try that was busy; -1 if there was no listing
	// Attempts counts the tries to enter, each with a node unless a try was busy at its look. A lost session or node,
	// or a MultiLock that gave up, takes more. A node that was handed on or kept takes none.
	Attempts int
}

// HoldInfo describes a hold.
type HoldInfo struct {
	Kind   string
	Name   string // of the option WithName; "" without it
	Chroot string // the path of the connect string; "/" if it has none
	Path   string // the lock's directory
	Node   string // the contender's node
	Label  string // the label of the acquisition, or ""
}

// JobInfo describes what has become of a tick of a job of package schedule.
type JobInfo struct {
	Name    string    // of the option WithName; "" without it
	Chroot  string    // the path of the connect string; "/" if it has none
	Path    string    // the job's directory
	Tick    time.Time // in any time zone; the last one of several
	Ticks   int       // 1, or how many were left out
	Outcome string    // of a schedule.Outcome, such as ran; skipped if a CatchUp says that the ticks were left out; "" of a new job
	Err     error     // of the call, or of the job if it ran; a *schedule.SkippedError for ticks that were left out
}

// State is the state of a [Manager]. The package documentation has a diagram.
type State int

const (
	// Connecting: there is no session. The manager is trying to open one.
	Connecting State = iota
	// Connected: there is a session, and a connection to a server that has it.
	Connected
	// Suspended: there is a session but no connection. Locks stay held for [Session.Remaining].
	Suspended
	// Lost: the session is gone, with everything that was held under it. Connecting follows.
	Lost
	// Closed: Close was called. Nothing follows.
	Closed
)

// String returns the state's name in lower case, as lockz and otelzk show it: connected.
func (s State) String() string {
	names := []string{"connecting", "connected", "suspended", "lost", "closed"}
	if s < 0 || int(s) >= len(names) {
		return "unknown"
	}
	return names[s]
}

// Change is a step of a [Manager] from one state to another.
type Change struct {
	From, To State
	Session  int64 // the id of the session that the change is about, or 0
	// Err is the cause of a change to Suspended, Lost or Closed, and nil otherwise. That of a change to Suspended says
	// which server the connection was to, and how it ended.
	Err error
	At  time.Time
}

// traces are the hooks of a manager, combined to one Trace. That does not change: hooks that are added later make a new
// one.
type traces struct {
	adding sync.Mutex
	now    atomic.Pointer[Trace] // never nil
}

func (h *traces) add(t Trace) {
	h.adding.Lock()
	defer h.adding.Unlock()
	all := combine(*h.now.Load(), t)
	h.now.Store(&all)
}

// combine returns hooks that call those of a, and then those of b with the context that a returned. The functions that
// they return are called in the opposite order, like deferred calls. State is not combined: each State hook is a
// subscriber.
func combine(a, b Trace) Trace {
	acquire := b.Acquire
	if a.Traceparent != nil && acquire != nil {
		acquire = func(ctx context.Context, info AcquireInfo) (context.Context, func(AcquireResult)) {
			info.Traceparent = a.Traceparent(ctx)
			return b.Acquire(ctx, info)
		}
	}
	return Trace{
		Traceparent: merge(a.Traceparent, b.Traceparent, func(ctx context.Context) string {
			if word := a.Traceparent(ctx); word != "" {
				return word
			}
			return b.Traceparent(ctx)
		}),
		Request: merge(a.Request, b.Request, nest(a.Request, b.Request)),
		Watch:   merge(a.Watch, b.Watch, nest(a.Watch, b.Watch)),
		Acquire: merge(a.Acquire, acquire, nest(a.Acquire, acquire)),
		Release: merge(a.Release, b.Release, func(ctx, holder context.Context, h HoldInfo) (context.Context, func(error)) {
			next, endA := a.Release(ctx, holder, h)
			ctx = cmp.Or(next, ctx)
			next, endB := b.Release(ctx, holder, h)
			return cmp.Or(next, ctx), inTurn(endB, endA)
		}),
		Hold: merge(a.Hold, b.Hold, func(ctx context.Context, h HoldInfo) func(error) {
			endA := a.Hold(ctx, h)
			return inTurn(b.Hold(ctx, h), endA)
		}),
		Loss: merge(a.Loss, b.Loss, func(ctx context.Context, h HoldInfo, cause error) {
			a.Loss(ctx, h, cause)
			b.Loss(ctx, h, cause)
		}),
		Retry: merge(a.Retry, b.Retry, func(ctx context.Context, r RetryInfo) {
			a.Retry(ctx, r)
			b.Retry(ctx, r)
		}),
		Job: merge(a.Job, b.Job, func(ctx context.Context, j JobInfo) {
			a.Job(ctx, j)
			b.Job(ctx, j)
		}),
	}
}

// merge returns both, which calls a and b, or the only one of them that is not nil.
func merge[F any](a, b, both F) F {
	switch {
	case reflect.ValueOf(a).IsNil():
		return b
	case reflect.ValueOf(b).IsNil():
		return a
	}
	return both
}

func nest[I, R any](a, b func(context.Context, I) (context.Context, func(R))) func(context.Context, I) (context.Context, func(R)) {
	return func(ctx context.Context, info I) (context.Context, func(R)) {
		next, endA := a(ctx, info)
		ctx = cmp.Or(next, ctx)
		next, endB := b(ctx, info)
		return cmp.Or(next, ctx), inTurn(endB, endA)
	}
}

// inTurn returns a function that calls both, of which either may be nil.
func inTurn[R any](first, second func(R)) func(R) {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(r R) {
		first(r)
		second(r)
	}
}

func endNothing(error) {}

// traceRequest calls the hook for a request, and returns the function to call at its end.
func (s *Session) traceRequest(ctx context.Context, op, path string) func(error) {
	hook := s.m.trace.now.Load().Request
	if hook == nil {
		return endNothing
	}
	to := s.server()
	_, end := hook(ctx, RequestInfo{Op: op, Path: path, Chroot: s.cfg.outward("/"), Server: to.Name(), Peer: to.Addr})
	if end == nil {
		return endNothing
	}
	return end
}

func (s *Session) traceRetry(ctx context.Context, op string, try int, cause error) {
	if hook := s.m.trace.now.Load().Retry; hook != nil {
		hook(ctx, RetryInfo{Op: op, Try: try, Cause: cause})
	}
}
