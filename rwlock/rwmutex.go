package rwlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// RWMutex is a lock that is held by any number of readers or by one writer, of all
// processes that use the same path. The algorithm is that of [queue]; the nodes are those
// of Curator's InterProcessReadWriteLock.
//
// All methods may be called by any number of goroutines at once; each waits in the one
// queue of all processes. They panic if [New] has not made the RWMutex, and those that take a
// context panic if it is nil.
type RWMutex struct {
	_ misuse.NoCopy

	q       *queue.Queue
	data    []byte             // nil: the default
	revoked func(*queue.Lease) // nil: nobody wants to know

	writes *hold.Holds[*queue.Lease] // one
	reads  *hold.Holds[*queue.Lease] // any number
}

// made returns rw. It panics if rw is nil or a zero value.
func (rw *RWMutex) made() *RWMutex {
	if rw == nil || rw.q == nil {
		panic("rwlock: RWMutex not made by New")
	}
	return rw
}

// New returns the lock at an absolute path of ZooKeeper, a directory that is made when
// needed and goes when it is not. It does no I/O. A nil manager, a bad path or a bad
// option is an error that matches [session.ErrInvalid].
//
// Two RWMutex values at one path are the same lock, in one process too; but each knows
// only of what was locked through itself, as far as Unlock, Held and owners go.
func New(m *session.Manager, path string, opts ...Option) (*RWMutex, error) {
	q, err := queue.New(m, path)
	if err != nil {
		return nil, fmt.Errorf("rwlock: %w", err)
	}
	rw := &RWMutex{q: q, writes: hold.One[*queue.Lease](path, m), reads: hold.Many[*queue.Lease](path, m)}
	rw.writes.Refuse = rw.refuseReader
	if err := hold.ApplyAll(opts, func(o Option) error { return o.apply(rw) }); err != nil {
		return nil, fmt.Errorf("rwlock: %w", err)
	}
	return rw, nil
}

// Lock waits for its turn and takes the write lock. It returns nil when it holds it; when
// ctx ends before, an error that matches ctx.Err(), at once and with nothing left behind;
// or [session.ErrClosed] when the manager is closed. That ctx ends after it has returned
// nil changes nothing. A lost connection or session is not the caller's business: it goes
// on waiting, in a new session at the end of the queue.
//
// To the owner of ctx ([WithOwner]) that holds the write lock it returns at once, and fails
// with [session.ErrLost] if that is lost. One that holds the read lock alone gets
// [ErrUpgrade], or [session.ErrLost], before anything is sent.
//
// Other errors: [queue.ErrConflict], [queue.ErrSequence], [session.ErrTooManyNodes], and
// what the server refuses, such as zk.ErrNoAuth.
//
// If the write lock is lost before Unlock, others can come in; but no writer through this
// RWMutex: its next Lock returns only after that Unlock. Until then the goroutines in Lock have
// no place in the queue, so that a writer that hangs keeps out no other process.
func (rw *RWMutex) Lock(ctx context.Context) error {
	rw.made()
	misuse.Context(ctx, "rwlock: RWMutex.Lock")
	_, err := rw.writes.Lock(ctx, rw.write(rw.q.Acquire))
	return err
}

// TryLock takes the write lock if nobody is in the way. It returns false and nil if
// somebody is; an error says that it could not tell, or [ErrUpgrade]. It leaves nothing
// behind unless it returns true. It waits for the servers, as ctx allows, but for no holder.
func (rw *RWMutex) TryLock(ctx context.Context) (bool, error) {
	rw.made()
	misuse.Context(ctx, "rwlock: RWMutex.TryLock")
	return rw.writes.TryLock(ctx, rw.write(rw.q.TryAcquire))
}

// Unlock gives back what one Lock or TryLock took. With n Locks by one owner, the n-th
// Unlock gives the write lock up; a read lock that the owner has taken within it stays.
//
// Giving it up is certain from the moment of the call. Unlock returns nil when the
// server has confirmed it, and [queue.ErrReleasePending] when that has not come after a
// second, as when disconnected; there is nothing left to do then either. It returns
// [ErrNotHeld], and frees nothing, when there is no Lock to give back, and
// [session.ErrLost] when the lock was lost before: then others may have been in already.
// It never frees what was locked through another object, nor what a Do holds.
//
// Unlock has no handle, so it cannot tell which goroutine calls it. Where several goroutines
// share the RWMutex, a goroutine that calls it once too often, or without a Lock, takes the hold
// of another one, and with it the report of a loss. Use Do there, which gives back its own hold
// and reports its own loss, or [RWMutex.Acquire], whose lease does.
func (rw *RWMutex) Unlock() error { return rw.made().writes.Unlock() }

// RLock waits for the writers that came before, and takes the read lock beside any number
// of other readers. It returns and fails as [RWMutex.Lock] does, except that there is no
// ErrUpgrade: to the owner of ctx ([WithOwner]) that holds the read lock, or the write
// lock, it returns without waiting for anyone, and fails with [session.ErrLost] if that is
// lost.
func (rw *RWMutex) RLock(ctx context.Context) error {
	rw.made()
	misuse.Context(ctx, "rwlock: RWMutex.RLock")
	_, err := rw.reads.Lock(ctx, rw.read(rw.q.Acquire))
	return err
}

// TryRLock takes the read lock if no writer is in the way, be it one that waits. It
// returns and fails as [RWMutex.TryLock] does, except that there is no ErrUpgrade.
func (rw *RWMutex) TryRLock(ctx context.Context) (bool, error) {
	rw.made()
	misuse.Context(ctx, "rwlock: RWMutex.TryRLock")
	return rw.reads.TryLock(ctx, rw.read(rw.q.TryAcquire))
}

// RUnlock gives back what one RLock or TryRLock took, and returns what Unlock does.
//
// It cannot tell which goroutine calls it. Of several read locks that were taken by RLock of
// this RWMutex it gives up first one that was lost, which nobody can rely on any more, then one
// without an owner, then the oldest; it never gives up what RDo holds. So where several
// goroutines share the RWMutex, RUnlock may give up another goroutine's hold, and report the
// loss of another goroutine's hold. While there is a lost hold, the goroutine that calls RUnlock
// first gets [session.ErrLost], whether the lost hold was its own or not, and a goroutine that
// did lose its hold may get nil. Where owners share it, another owner may no longer be known to
// read, while this one still is. Use RDo there, which gives back its own hold and reports its
// own loss, or [RWMutex.RAcquire], whose lease does.
func (rw *RWMutex) RUnlock() error { return rw.made().reads.Unlock() }

// Acquire takes the write lock and returns it as a handle, with its own Release, apart from
// Lock and Unlock. It waits and fails as Lock does, and knows no owners.
func (rw *RWMutex) Acquire(ctx context.Context) (*queue.Lease, error) {
	rw.made()
	misuse.Context(ctx, "rwlock: RWMutex.Acquire")
	return rw.q.Acquire(ctx, rw.request(writing))
}

// TryAcquire is Acquire that waits for no holder: [queue.ErrBusy] says that somebody is in
// the way. It leaves nothing behind unless it returns a lease.
func (rw *RWMutex) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	rw.made()
	misuse.Context(ctx, "rwlock: RWMutex.TryAcquire")
	return rw.q.TryAcquire(ctx, rw.request(writing))
}

// RAcquire is [RWMutex.Acquire] of the read lock.
func (rw *RWMutex) RAcquire(ctx context.Context) (*queue.Lease, error) {
	rw.made()
	misuse.Context(ctx, "rwlock: RWMutex.RAcquire")
	return rw.q.Acquire(ctx, rw.request(reading))
}

// TryRAcquire is [RWMutex.TryAcquire] of the read lock.
func (rw *RWMutex) TryRAcquire(ctx context.Context) (*queue.Lease, error) {
	rw.made()
	misuse.Context(ctx, "rwlock: RWMutex.TryRAcquire")
	return rw.q.TryAcquire(ctx, rw.request(reading))
}

// Do calls f while holding the write lock, and always unlocks, also when f panics. The
// context that f is given ends with ctx, and when the lock is lost; [context.Cause] tells
// which. It carries the owner of ctx, if there is one.
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
func (rw *RWMutex) Do(ctx context.Context, f func(context.Context) error) error {
	rw.made()
	misuse.Context(ctx, "rwlock: RWMutex.Do")
	if f == nil {
		return fmt.Errorf("rwlock: %w: Do of a nil function", session.ErrInvalid)
	}
	return rw.writes.Do(ctx, rw.write(rw.q.Acquire), f)
}

// RDo is [RWMutex.Do] with the read lock.
func (rw *RWMutex) RDo(ctx context.Context, f func(context.Context) error) error {
	rw.made()
	misuse.Context(ctx, "rwlock: RWMutex.RDo")
	if f == nil {
		return fmt.Errorf("rwlock: %w: RDo of a nil function", session.ErrInvalid)
	}
	return rw.reads.Do(ctx, rw.read(rw.q.Acquire), f)
}

// Held reports whether somebody who came in through Lock, TryLock or Do of this RWMutex
// holds the write lock, at the time of the call and by the clock.
func (rw *RWMutex) Held() bool { return rw.made().writes.Held() }

// RHeld is [RWMutex.Held] for the read lock: RLock, TryRLock and RDo.
func (rw *RWMutex) RHeld() bool { return rw.made().reads.Held() }

// Path returns the lock's path.
func (rw *RWMutex) Path() string { return rw.made().q.Path() }

// FullName returns what tells the lock from all others: its servers, and its path with the
// chroot (see [session.Manager.FullName]).
func (rw *RWMutex) FullName() string { return rw.made().q.FullName() }

// Manager returns the session manager that was given to [New].
func (rw *RWMutex) Manager() *session.Manager { return rw.made().q.Manager() }

// Contenders returns who holds the lock and who waits for it, readers and writers of all
// processes in order. It fails with ctx's error, [queue.ErrConflict], [session.ErrClosed]
// or what the server refused.
func (rw *RWMutex) Contenders(ctx context.Context) ([]queue.Contender, error) {
	rw.made()
	misuse.Context(ctx, "rwlock: RWMutex.Contenders")
	return rw.q.Contenders(ctx, writing)
}

func (rw *RWMutex) request(kind *queue.Kind) queue.Request {
	return queue.Request{Kind: kind, Data: rw.data, Revoked: rw.revoked}
}

// enter is Acquire or TryAcquire of the queue.
type enter func(context.Context, queue.Request) (*queue.Lease, error)

// write gets the write lock for the owner of a context that holds neither lock.
func (rw *RWMutex) write(enter enter) hold.Get[*queue.Lease] {
	return func(ctx context.Context) (*queue.Lease, error) { return enter(ctx, rw.request(writing)) }
}

// refuseReader says why the owner of a context does not get the write lock, if it has the read
// lock.
func (rw *RWMutex) refuseReader(ctx context.Context) error {
	read := rw.reads.Of(hold.OwnerOf(ctx))
	if read == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("lock %s: %w", rw.Path(), err)
	}
	if err := read.Lease.Err(); err != nil && !errors.Is(err, queue.ErrReleased) {
		return err // it has read in vain, which is worse news
	}
	return fmt.Errorf("lock %s: %w", rw.Path(), ErrUpgrade)
}

// read gets the read lock for the owner of a context that does not hold it: in the place of
// its write lock, if it has that.
func (rw *RWMutex) read(enter enter) hold.Get[*queue.Lease] {
	return func(ctx context.Context) (*queue.Lease, error) {
		own := hold.OwnerOf(ctx)
		for {
			write := rw.writes.Of(own)
			if write == nil {
				return enter(ctx, rw.request(reading))
			}
			l, err := write.Lease.Beside(ctx, rw.request(reading))
			if err == nil || rw.writes.Of(own) == write {
				return l, err
			}
			// Another goroutine of this owner has unlocked meanwhile: without a write lock
			// there is a queue to stand in.
		}
	}
}
