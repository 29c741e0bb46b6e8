package zklock

import (
	"context"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Mutex is a mutual exclusion lock over all processes that use the same path. The
// algorithm is that of [queue], with one lease for everybody: Curator's
// InterProcessMutex, whose nodes it shares, and zk.Lock's of go-zookeeper, in one round
// trip to enter and none to take over.
//
// All methods may be called by any number of goroutines at once; each waits in the one
// queue of all processes, but for [WithLocalHandover]. They panic if [New] has not made the
// Mutex, and those that take a context panic if it is nil.
type Mutex struct {
	_ misuse.NoCopy

	q       *queue.Queue
	kind    *queue.Kind
	data    []byte             // nil: the default
	revoked func(*queue.Lease) // nil: not revocable
	unfair  bool
	passes  int          // at most, of the lock within the process in one turn
	local   *queue.Local // nil: each contends by itself
	holds   *hold.Holds[*queue.Lease]
}

// made returns m. It panics if m is nil or a zero value.
func (m *Mutex) made() *Mutex {
	if m == nil || m.q == nil {
		panic("zklock: Mutex not made by New")
	}
	return m
}

// mutex is the kind of lock: one at a time. It counts kazoo's nodes too.
var mutex = &queue.Kind{
	Name:     "mutex",
	Prefixes: []string{queue.PrefixLock, queue.PrefixKazooLock},
	Policy:   func(queue.Node) queue.Policy { return queue.Policy{} },
}

// New returns the mutex at an absolute path of ZooKeeper, a directory that is made when
// needed and goes when it is not. It does no I/O. A nil manager, a bad path or a bad
// option is an error that matches [session.ErrInvalid]. What is not known to be a good name
// goes through [EscapePath].
//
// Two Mutex values at one path exclude each other, in one process too.
func New(m *session.Manager, path string, opts ...Option) (*Mutex, error) {
	q, err := queue.New(m, path)
	if err != nil {
		return nil, fmt.Errorf("zklock: %w", err)
	}
	mx := &Mutex{q: q, kind: mutex, holds: hold.One[*queue.Lease](path, m)}
	if err := hold.ApplyAll(opts, func(o Option) error { return o.apply(mx) }); err != nil {
		return nil, fmt.Errorf("zklock: %w", err)
	}
	if mx.unfair {
		if mx.kind != mutex {
			return nil, fmt.Errorf("zklock: %w: WithPrefixes: no other library has nodes of an unfair lock", session.ErrInvalid)
		}
		mx.kind = unfair
	}
	if mx.passes > 0 {
		if mx.local, err = q.Local(mx.request(), mx.passes); err != nil {
			return nil, fmt.Errorf("zklock: %w", err)
		}
	}
	return mx, nil
}

// Lock waits for its turn and takes the mutex. It returns nil when it holds it; when ctx
// ends before, an error that matches ctx.Err(), at once and with nothing left behind; or
// [session.ErrClosed] when the manager is closed. That ctx ends after it has returned
// nil changes nothing. A lost connection or session is not the caller's business: it
// goes on waiting, in a new session at the end of the queue.
//
// Other errors: [session.ErrLost] when the owner of ctx ([WithOwner]) holds the mutex
// but has lost it, [queue.ErrConflict], [queue.ErrSequence], [session.ErrTooManyNodes],
// and what the server refuses, such as zk.ErrNoAuth.
//
// If the mutex is lost before Unlock, others can come in; but not through this Mutex:
// its next Lock returns only after that Unlock. Until then the goroutines in Lock have no place
// in the queue, so that a holder that hangs keeps out no other process.
func (m *Mutex) Lock(ctx context.Context) error {
	m.made()
	misuse.Context(ctx, "zklock: Mutex.Lock")
	_, err := m.holds.Lock(ctx, m.Acquire)
	return err
}

// TryLock takes the mutex if nobody is in the way. It returns false and nil if somebody
// is; an error says that it could not tell. It leaves nothing behind unless it returns
// true. It waits for the servers, as ctx allows, but for no holder.
func (m *Mutex) TryLock(ctx context.Context) (bool, error) {
	m.made()
	misuse.Context(ctx, "zklock: Mutex.TryLock")
	return m.holds.TryLock(ctx, m.TryAcquire)
}

// Unlock gives back what one Lock or TryLock took. With n Locks by one owner, the n-th
// Unlock gives the mutex up.
//
// Giving it up is certain from the moment of the call. Unlock returns nil when the
// server has confirmed it, and [queue.ErrReleasePending] when that has not come after a
// second, as when disconnected; there is nothing left to do then either. It returns
// [ErrNotHeld], and frees nothing, when there is no Lock to give back, and
// [session.ErrLost] when the mutex was lost before: then others may have been in
// already. It never frees what was locked through another object, nor what a Do
// holds.
//
// Unlock has no handle, so it cannot tell which goroutine calls it. Where several goroutines
// share the Mutex, a goroutine that calls it once too often, or without a Lock, takes the hold of
// another one, and with it the report of a loss. Use Do there, which gives back its own hold and
// reports its own loss, or [Mutex.Acquire], whose lease does.
func (m *Mutex) Unlock() error { return m.made().holds.Unlock() }

// Acquire takes the mutex and returns it as a handle, with its own Release, apart from
// Lock and Unlock. It waits and fails as Lock does, and knows no owners.
func (m *Mutex) Acquire(ctx context.Context) (*queue.Lease, error) {
	m.made()
	misuse.Context(ctx, "zklock: Mutex.Acquire")
	if m.local != nil {
		return m.local.Acquire(ctx)
	}
	return m.q.Acquire(ctx, m.request())
}

// TryAcquire is Acquire that waits for no holder: [queue.ErrBusy] says that somebody is in
// the way. It leaves nothing behind unless it returns a lease.
func (m *Mutex) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	m.made()
	misuse.Context(ctx, "zklock: Mutex.TryAcquire")
	if m.local != nil {
		return m.local.TryAcquire(ctx)
	}
	return m.q.TryAcquire(ctx, m.request())
}

func (m *Mutex) request() queue.Request {
	return queue.Request{Kind: m.kind, Data: m.data, Revoked: m.revoked}
}

// Do calls f while holding the mutex, and always unlocks, also when f panics. The
// context that f is given ends with ctx, and when the lock is lost; [context.Cause]
// tells which. It carries the owner of ctx, if there is one.
// Its Err goes by the clock at the time of the call: see [queue.Lease.Context].
//
// [queue.LeaseFrom] gives the lease, for its token and guard, from that context.
//
// Do returns the error of f; or, without having called f, what Lock returns. If the lock was lost
// before f returned, the error matches [session.ErrLost], also when f returned nil, and the
// errors that f returned. But it matches [context.Canceled] and [context.DeadlineExceeded] only
// if ctx itself has ended: that f was cut short by the loss is not the caller's cancellation.
// That the server has not yet confirmed the release is not reported: f is done and the lock
// given up.
func (m *Mutex) Do(ctx context.Context, f func(context.Context) error) error {
	m.made()
	misuse.Context(ctx, "zklock: Mutex.Do")
	if f == nil {
		return fmt.Errorf("zklock: %w: Do of a nil function", session.ErrInvalid)
	}
	return m.holds.Do(ctx, m.Acquire, f)
}

// Held reports whether somebody who came in through Lock, TryLock or Do of this Mutex
// holds it, at the time of the call and by the clock.
func (m *Mutex) Held() bool { return m.made().holds.Held() }

// Path returns the mutex's path.
func (m *Mutex) Path() string { return m.made().q.Path() }

// FullName returns what tells the mutex from all other locks: its servers, and its path with
// the chroot (see [session.Manager.FullName]).
func (m *Mutex) FullName() string { return m.made().q.FullName() }

// Manager returns the session manager that was given to [New].
func (m *Mutex) Manager() *session.Manager { return m.made().q.Manager() }

// Contenders returns who holds the mutex and who waits for it, in all processes and in
// order. It fails with ctx's error, [queue.ErrConflict], [session.ErrClosed] or what the
// server refuses.
func (m *Mutex) Contenders(ctx context.Context) ([]queue.Contender, error) {
	m.made()
	misuse.Context(ctx, "zklock: Mutex.Contenders")
	return m.q.Contenders(ctx, m.kind)
}
