package semaphore

import (
	"context"
	"errors"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Semaphore is a number of leases that all processes that use the same path share. The
// algorithm is that of [queue]: a request is one node, whose name says how many leases it
// asks for, and may go when it fits beside all who are ahead of it.
//
// All methods may be called by any number of goroutines at once; each waits in the one
// queue of all processes. They panic if [New] has not made the Semaphore, and those that take a
// context panic if it is nil.
type Semaphore struct {
	_ misuse.NoCopy

	path    string
	top     *queue.Queue // at the path
	q       *queue.Queue // of the leases
	kind    *queue.Kind
	max     int    // as given to New
	data    []byte // nil: the default
	revoked func(*queue.Lease)
	holds   *hold.Holds[*queue.Lease]

	curator bool
	gate    *queue.Queue // for Curator's layout alone
}

// made returns s. It panics if s is nil or a zero value.
func (s *Semaphore) made() *Semaphore {
	if s == nil || s.q == nil {
		panic("semaphore: Semaphore not made by New")
	}
	return s
}

// New returns the semaphore of maxLeases leases at an absolute path of ZooKeeper, a
// directory that is made when needed and goes when it is not. It does no I/O. A nil manager,
// a bad path, a limit below one or a bad option is an error that matches
// [session.ErrInvalid].
//
// Two Semaphore values at one path share its leases, in one process too. They must give the
// same limit: where another is in force, requests fail with [queue.ErrConflict], unless an
// operator has set it with [Semaphore.Resize].
func New(m *session.Manager, path string, maxLeases int, opts ...Option) (*Semaphore, error) {
	s := &Semaphore{path: path, max: maxLeases, holds: hold.Apart[*queue.Lease](path)}
	err := errors.Join(
		checkCount(maxLeases),
		hold.ApplyAll(opts, func(o Option) error { return o.apply(s) }),
	)
	if err == nil {
		err = s.open(m)
	}
	if err != nil {
		return nil, fmt.Errorf("semaphore: %w", err)
	}
	return s, nil
}

// open makes the queues.
func (s *Semaphore) open(m *session.Manager) (err error) {
	s.kind = &queue.Kind{Name: "semaphore", Prefixes: []string{queue.PrefixLease}}
	if s.top, err = queue.New(m, s.path); err != nil {
		return err
	}
	s.q = s.top
	if !s.curator {
		s.kind.Config, s.kind.Configured = first(s.max).encode(), s.policy
		s.kind.Rivals = curatorDirs
		return nil
	}
	s.kind.Policy = func(queue.Node) queue.Policy { return queue.Policy{Slack: s.max - 1} }
	if s.gate, err = queue.New(m, s.path+"/"+curatorLocks); err != nil {
		return err
	}
	s.q, err = queue.New(m, s.path+"/"+curatorLeases)
	return err
}

// Lock waits for its turn and takes one lease. It returns and fails as [Semaphore.Acquire]
// does. That ctx ends after it has returned nil changes nothing.
//
// Each Lock takes another lease, with an owner in ctx (WithOwner of package zklock) too: a
// semaphore is not re-entrant.
func (s *Semaphore) Lock(ctx context.Context) error {
	s.made()
	misuse.Context(ctx, "semaphore: Semaphore.Lock")
	_, err := s.holds.Lock(ctx, s.Acquire)
	return err
}

// TryLock takes one lease if nobody is in the way. It returns false and nil if somebody is;
// an error says that it could not tell. It waits for the servers, as ctx allows, but for no
// holder.
func (s *Semaphore) TryLock(ctx context.Context) (bool, error) {
	s.made()
	misuse.Context(ctx, "semaphore: Semaphore.TryLock")
	return s.holds.TryLock(ctx, s.TryAcquire)
}

// Unlock gives back a lease that Lock or TryLock took: one that was lost, if there is one,
// or else the oldest.
//
// Giving it up is certain from the moment of the call. Unlock returns nil when the server
// has confirmed it, and [queue.ErrReleasePending] when that has not come after a second, as
// when disconnected; there is nothing left to do then either. It returns [session.ErrLost]
// when it gave back one that was lost, and [ErrNotHeld], and frees nothing, when there is
// none to give back. What a Do holds it never gives back.
//
// Unlock cannot tell which goroutine calls it. Where several goroutines share the Semaphore, it
// may give back another goroutine's lease, and report the loss of another goroutine's lease.
// While there is a lost lease, the goroutine that calls Unlock first gets [session.ErrLost],
// whether the lost lease was its own or not, and a goroutine that did lose its lease may get nil.
// Use Do there, which gives back its own lease and reports its own loss, or [Semaphore.Acquire].
func (s *Semaphore) Unlock() error { return s.made().holds.Unlock() }

// Held reports whether somebody who came in through Lock, TryLock or Do of this Semaphore
// holds a lease, at the time of the call and by the clock.
func (s *Semaphore) Held() bool { return s.made().holds.Held() }

// Acquire is [Semaphore.AcquireN] for one lease.
func (s *Semaphore) Acquire(ctx context.Context) (*queue.Lease, error) {
	s.made()
	misuse.Context(ctx, "semaphore: Semaphore.Acquire")
	return s.AcquireN(ctx, 1)
}

// TryAcquire is [Semaphore.TryAcquireN] for one lease.
func (s *Semaphore) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	s.made()
	misuse.Context(ctx, "semaphore: Semaphore.TryAcquire")
	return s.TryAcquireN(ctx, 1)
}

// AcquireN waits for its turn and takes n leases, all or none, as one handle; its Release
// gives all of them back. It returns when those who came before have left n leases free;
// when ctx ends before, with an error that matches ctx.Err(), at once and with nothing left
// behind; or with [session.ErrClosed] when the manager is closed. A lost connection or
// session is not the caller's business: it goes on waiting, in a new session at the end of
// the queue.
//
// [session.ErrInvalid] says that n is below one, or more than there are when it is asked for
// or after a [Semaphore.Resize] meanwhile. An n above the limit that New was given costs a
// request more: the server is asked for the limit first.
// [queue.ErrConflict] says that a semaphore of another limit, or another kind of lock, is at
// this path. Other errors: [queue.ErrSequence], [session.ErrTooManyNodes], and what the
// server refuses, such as zk.ErrNoAuth.
func (s *Semaphore) AcquireN(ctx context.Context, n int) (*queue.Lease, error) {
	s.made()
	misuse.Context(ctx, "semaphore: Semaphore.AcquireN")
	if s.curator {
		return s.acquire(ctx, n, func(ctx context.Context, r queue.Request) (*queue.Lease, error) {
			return s.throughGate(ctx, s.gate.Acquire, s.q.Acquire, r)
		})
	}
	return s.acquire(ctx, n, s.q.Acquire)
}

// TryAcquireN is AcquireN that waits for no holder: [queue.ErrBusy] says that n leases are
// not free, or that somebody who came before is waiting for some, or trying. It leaves
// nothing behind unless it returns a lease.
func (s *Semaphore) TryAcquireN(ctx context.Context, n int) (*queue.Lease, error) {
	s.made()
	misuse.Context(ctx, "semaphore: Semaphore.TryAcquireN")
	if s.curator {
		return s.acquire(ctx, n, func(ctx context.Context, r queue.Request) (*queue.Lease, error) {
			return s.throughGate(ctx, s.gate.TryAcquire, s.q.TryAcquire, r)
		})
	}
	return s.acquire(ctx, n, s.q.TryAcquire)
}

func (s *Semaphore) acquire(ctx context.Context, n int, get get) (*queue.Lease, error) {
	if err := s.checkRequest(ctx, n); err != nil {
		return nil, fmt.Errorf("semaphore %s: %w", s.path, err)
	}
	return get(ctx, queue.Request{Kind: s.kind, Weight: n, Data: s.data, Revoked: s.revoked})
}

// checkRequest refuses what cannot be had. Whether n is too much for a limit that was set to
// less than New was given, the queue finds out.
func (s *Semaphore) checkRequest(ctx context.Context, n int) error {
	if err := checkCount(n); err != nil {
		return err
	}
	if s.curator && n > 1 {
		return fmt.Errorf("%w: %d leases at once: in Curator's layout a node is one lease", session.ErrInvalid, n)
	}
	if n <= s.max {
		return nil
	}
	c, err := s.q.Config(ctx)
	if err != nil {
		return err
	}
	if most := s.inForce(c); n > most {
		return fmt.Errorf("%w: %d of %d leases", session.ErrInvalid, n, most)
	}
	return nil
}

// Do calls f while holding one lease, and always gives that back, also when f panics. The
// context that f is given ends with ctx, and when the lease is lost; [context.Cause] tells
// which.
// Its Err goes by the clock at the time of the call: see [queue.Lease.Context].
//
// [queue.LeaseFrom] gives the lease, for its token and guard, from that context.
//
// Do returns the error of f; or, without having called f, what Lock returns. If the lease was lost
// before f returned, the error matches [session.ErrLost], also when f returned nil, and the
// errors that f returned. But it matches [context.Canceled] and [context.DeadlineExceeded] only
// if ctx itself has ended: that f was cut short by the loss is not the caller's cancellation.
// That the server has not yet confirmed the release is not reported: f is done and the lease
// given up.
func (s *Semaphore) Do(ctx context.Context, f func(context.Context) error) error {
	s.made()
	misuse.Context(ctx, "semaphore: Semaphore.Do")
	if f == nil {
		return fmt.Errorf("semaphore: %w: Do of a nil function", session.ErrInvalid)
	}
	return s.holds.Do(ctx, s.Acquire, f)
}

// Path returns the semaphore's path.
func (s *Semaphore) Path() string { return s.made().path }

// FullName returns what tells the semaphore from all other locks: its servers, and its path
// with the chroot (see [session.Manager.FullName]).
func (s *Semaphore) FullName() string { return s.made().top.FullName() }

// Contenders returns who holds leases and who waits for some, in all processes and in
// order. It fails with ctx's error, [queue.ErrConflict], [session.ErrClosed] or what the
// server refuses.
func (s *Semaphore) Contenders(ctx context.Context) ([]queue.Contender, error) {
	s.made()
	misuse.Context(ctx, "semaphore: Semaphore.Contenders")
	all, err := s.q.Contenders(ctx, s.kind)
	if err != nil || !s.curator {
		return all, err
	}
	queued, err := s.gate.Contenders(ctx, gate)
	if err != nil {
		return nil, err
	}
	for _, c := range queued {
		if !c.Holder { // who is at the gate has a node among the leases
			all = append(all, c)
		}
	}
	return all, nil
}
