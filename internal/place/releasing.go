package place

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
)

const (
	Done     End = iota // its holder has used the lock, and may want it again: the place may be kept
	Unwanted            // nobody has used the lock: the place is passed to a waiter of this process, and never kept
)

// UnlockPatience is how long an Unlock waits for the servers' answer. It is a variable for tests,
// most of which want the answer also on a busy machine.
var UnlockPatience = time.Second

// Releasing is a release under way. Its caller calls Wait, Unlock or Leave, once.
type Releasing struct {
	l       *Lease
	ctx     context.Context // of the caller
	err     error           // why the lease had ended before; nil if this release has ended it
	removal *core.Removal   // nil if the lock was handed over, or its place is kept
	within  *core.Later     // for the hooks of the removal; nil if there is no Release hook
	end     func(error)     // of the Release hook; nil if there is none, or it was not called
}

// StartRelease ends the lease and sends the delete, so that several leases can be released right after each other.
// ctx is for hooks, and bounds Wait.
func (l *Lease) StartRelease(ctx context.Context, end End) *Releasing {
	r := l.startRelease(ctx, end, nil)
	r.tell()
	return r
}

// startRelease is StartRelease without the hooks. If the lease is released together with others, its node is deleted
// with theirs. No hook delays the delete, or the next holder.
func (l *Lease) startRelease(ctx context.Context, end End, with *parting) *Releasing {
	_ = l.Err() // if the clock has run out, the lease was lost before this release
	r := &Releasing{l: l, ctx: ctx}
	if !l.finish(ErrReleased) {
		r.err = l.Err()
		return r
	}
	removing := ctx
	if l.t.hooks().Release != nil {
		r.within = core.NewLater(ctx)
		removing = r.within
	}
	r.removal = l.t.release(removing, l, end, with)
	return r
}

// tell calls the hooks for the end of the hold, and for the beginning of the release.
func (r *Releasing) tell() {
	l := r.l
	if r.err == nil {
		l.tell(ErrReleased)
	} else if errors.Is(r.err, ErrReleased) {
		return
	}
	var within context.Context
	within, r.end = traceRelease(r.ctx, l.t.hooks(), l.ctx, l.info())
	if r.within != nil {
		r.within.Is(within)
	}
}

// Wait waits for the servers' answer until ctx ends. It returns what Release would.
func (r *Releasing) Wait() error {
	if r.removal != nil {
		select {
		case <-r.removal.Done():
		case <-r.ctx.Done():
			return r.conclude(fmt.Errorf("%w: %w", ErrReleasePending, r.ctx.Err()))
		}
	}
	return r.conclude(r.outcome())
}

// Unlock waits for the servers' answer, but for no connection, and until a time at most. If there is no answer by then,
// or if the session has ended, Unlock returns nil: the node goes without any further call. The log and the Release hook
// are told how it went.
func (r *Releasing) Unlock(until time.Time) error {
	if r.removal == nil {
		return r.conclude(nil)
	}
	if !r.answered(until) {
		r.late(true)
		return nil
	}
	err := r.conclude(r.outcome())
	if errors.Is(err, ErrReleasePending) {
		r.log(err, 0)
		return nil
	}
	return err
}

// answered waits for the end of the removal. It reports false if there is no connection to wait for, or the time is over.
func (r *Releasing) answered(until time.Time) bool {
	patience := time.NewTimer(time.Until(until))
	defer patience.Stop()
	select {
	case <-r.removal.Done():
		return true
	case <-r.removal.Cut():
	case <-patience.C:
	}
	select { // both may have happened
	case <-r.removal.Done():
		return true
	default:
		return false
	}
}

// Leave waits for nothing. Only the Release hook is told what the servers say, and the log of a refusal.
func (r *Releasing) Leave() error {
	if r.removal == nil {
		return r.conclude(nil)
	}
	if r.within != nil {
		r.late(false)
	}
	return nil
}

// late has the Release hook, and the log if the caller has waited in vain, told once the servers have answered or the
// session has ended.
func (r *Releasing) late(logged bool) {
	began := time.Now()
	told := func() {
		<-r.removal.Done()
		err := r.outcome()
		if logged {
			r.log(err, time.Since(began))
		}
		_ = r.conclude(err)
	}
	if !r.l.t.s.BeginLate(told) {
		go told() // the session has ended, and the removal with it
	}
}

// log tells of a release that Unlock has not waited for. The session logs that a server has refused.
func (r *Releasing) log(err error, took time.Duration) {
	t := r.l.t
	to := []any{"lock", t.q.dir, "node", t.path, "session", hexID(t.s)}
	switch {
	case err == nil:
		t.q.m.Logger().Info("zookeeper has confirmed the release of a lock, which Unlock did not wait for",
			append(to, "after", took.Round(time.Millisecond))...)
	case errors.Is(err, ErrReleasePending):
		t.q.m.Logger().Warn("the session has ended before zookeeper confirmed the release of a lock; its node goes with the session", to...)
	}
}

// outcome returns what came of the removal, which has ended.
func (r *Releasing) outcome() error {
	if r.removal == nil {
		return nil
	}
	err := r.removal.Err()
	if err != nil && r.l.t.s.Err() != nil {
		return fmt.Errorf("%w: %w", ErrReleasePending, err)
	}
	return err
}

// conclude tells the Release hook how the release has ended, and returns the error for the caller.
func (r *Releasing) conclude(err error) error {
	if r.err != nil {
		err = r.err
	}
	if r.end != nil {
		r.end(err)
	}
	if err == nil || r.err != nil && !errors.Is(r.err, ErrReleased) { // the error of a loss names the lock
		return err
	}
	return Failed("release", r.l.t.q.dir, err)
}

// Release gives the lease up, and waits for the servers until ctx ends.
func (l *Lease) Release(ctx context.Context, end End) error { return l.StartRelease(ctx, end).Wait() }

// Unlock gives the lease up, and waits for the servers for UnlockPatience at most, or not at all.
func (l *Lease) Unlock(end End, wait bool) error {
	r := l.StartRelease(context.Background(), end)
	if !wait || r.removal == nil { // handed over or kept: there is no answer, and reading the clock would cost a tenth of that
		return r.Leave()
	}
	return r.Unlock(time.Now().Add(UnlockPatience))
}

// StartReleases is StartRelease for several leases. It releases the last one first. The nodes of one session
// are deleted by one transaction, or each by itself if that fails.
func StartReleases(ctx context.Context, leases []*Lease, end End) (all []*Releasing) {
	var with parting
	for _, l := range slices.Backward(leases) {
		all = append(all, l.startRelease(ctx, end, &with))
	}
	with.start(ctx)
	for _, r := range all {
		r.tell()
	}
	return all
}
