package session

import (
	"cmp"
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// Trace is a set of hooks, each of which may be nil. A hook runs in place: as with [net/http/httptrace], what calls it
// waits until it returns. So it must not block, and neither panic nor end its goroutine: what it interrupts can stay
// held until the session ends. Hooks run in any number of goroutines at once, and under no mutex of this module: a hook
// may look at locks and sessions, but not wait for a lock or a request.
//
// Hooks of a delete in the background are called by the goroutine that reads the connection: one that blocks there
// holds up all answers of the session. Loss, and the function that Hold has returned if the hold was lost, are called by
// one goroutine of the manager in the order of the losses, and State by another.
//
// A hook that begins something returns the context to go on with, and a function that is called once with the
// outcome. Either may be nil. The context should end with the one that the hook got.
type Trace struct {
	// Traceparent returns the W3C traceparent for a contender's node, or "".
	Traceparent func(ctx context.Context) string

	// Request surrounds one request. Each try is a request of its own.
	Request func(ctx context.Context, r RequestInfo) (context.Context, func(error))

	// Watch surrounds the part of a wait during which the node ahead that WatchInfo describes stands.
	Watch func(ctx context.Context, w WatchInfo) (context.Context, func(error))

	// Acquire surrounds an acquisition, from the call to the grant or the error, for each lock of a MultiLock.
	Acquire func(ctx context.Context, a AcquireInfo) (context.Context, func(AcquireResult))

	// Release surrounds a release, from the call to its confirmation. That of a lost hold ends with the cause of the
	// loss. holder is the holder's context. If Unlock has returned before, only this hook and the log are told of a
	// refusal.
	Release func(ctx, holder context.Context, h HoldInfo) (context.Context, func(error))

	// Hold is called at a grant, with the holder's context, of which queue.LeaseFrom returns the lease. The function
	// is called at the end of the hold: with nil before the Release hook, or with the cause of a loss.
	Hold func(ctx context.Context, h HoldInfo) func(error)

	// Loss is called when a hold is lost, before the function that Hold has returned.
	Loss func(ctx context.Context, h HoldInfo, cause error)

	// Retry is called before a request or an acquisition is tried again.
	Retry func(ctx context.Context, r RetryInfo)

	// Job is called when the outcome of a tick of a schedule.Job is known: after its function, or else at the end of
	// Run, TryRun or CatchUp. schedule.New calls it once too, without an Outcome.
	Job func(ctx context.Context, j JobInfo)

	// State is called at each change of the manager's state, in order.
	State func(Change)
}

// RequestInfo describes a request.
type RequestInfo struct {
	Op     string // such as getChildren
	Chroot string // of the connect string; "/" if it has none
	Path   string // below the chroot
	Server string // host:port as in the connect string; "" if not known yet
	Peer   string // its address, as the dialer of [WithDialer] got it
}

// RetryInfo describes what is tried again.
type RetryInfo struct {
	Op    string // of the request, or "acquire"
	Try   int    // 1 after the first try; of removals always 1
	Cause error
}

// WatchInfo describes one node ahead of a waiter: the holder's if known, else the nearest.
type WatchInfo struct {
	Chroot string
	Path   string
	Nodes  int // nodes ahead that are watched, including this one
	Ahead  int // nodes ahead that the contender waits for

	// Known returns what is known of the node: nothing before an answer, or without the right to read it. It sends
	// nothing. Known and Holds may be called at any time.
	Known func() (n NodeInfo, ok bool)

	// Holds reports whether the node is known to be a holder's, or to have been.
	Holds func() bool
}

// NodeInfo is what a contender's node says.
type NodeInfo struct {
	Data        []byte
	ID          string // that of a queue.Contender; "" if not known
	Label       string
	Traceparent string
	Session     int64 // 0 if the node is not ephemeral
}

// AcquireInfo describes an acquisition.
type AcquireInfo struct {
	Kind   string // mutex, election, read, write, semaphore, or gate: the lock around entry to one in Curator's layout
	Name   string // of the option WithName; "" without it
	Chroot string
	Path   string // the lock's directory
	Try    bool
	Weight int  // how many leases of a semaphore it asks for
	Local  bool // goroutines of this process share the node
	Label  string

	// Traceparent is what an earlier Trace's hook has returned, or "".
	Traceparent string
}

// AcquireResult describes the end of an acquisition.
type AcquireResult struct {
	Err      error
	Busy     bool // a try found the lock taken; Err is nil then
	Position int  // contenders ahead at entry; -1 if not known
	// Attempts counts the tries to enter; a node that was handed on or kept takes none.
	Attempts int
}

// HoldInfo describes a hold.
type HoldInfo struct {
	Kind   string
	Name   string
	Chroot string
	Path   string
	Node   string
	Label  string
}

// JobInfo describes what has become of a tick of a schedule.Job.
type JobInfo struct {
	Name    string
	Chroot  string
	Path    string
	Tick    time.Time // the last one of several
	Ticks   int       // 1, or how many were left out
	Outcome string    // of a schedule.Outcome; "" of a new job
	Err     error     // of the function, or of the call
}

// State is the state of a [Manager]: see the package documentation.
type State int

const (
	// Connecting: there is no session yet.
	Connecting State = iota
	// Connected: a server has the session.
	Connected
	// Suspended: there is a session but no connection. Locks stay held for [Session.Remaining].
	Suspended
	// Lost: the session is gone, with everything under it. Connecting follows.
	Lost
	// Closed: Close was called. Nothing follows.
	Closed
)

func (s State) String() string {
	names := []string{"connecting", "connected", "suspended", "lost", "closed"}
	if s < 0 || int(s) >= len(names) {
		return "unknown"
	}
	return names[s]
}

// Change is a step from one state to another.
type Change struct {
	From, To State
	Session  int64 // or 0
	// Err is the cause of a change to Suspended, Lost or Closed.
	Err error
	At  time.Time
}

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

// combine returns hooks that call those of a, and then those of b with a's context. State is not combined: each State
// hook is a subscriber.
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
