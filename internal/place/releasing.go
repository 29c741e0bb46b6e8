package place

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
)

const (
	Done     End = iota // its holder has used the lock, and may want it again: the place may be kept
	Left                // as Done, and nobody waits for the server: only the Release hook is told what it says
	Unwanted            // nobody has used the lock: the place is passed to a waiter of this process, and never kept
)

// releasing is a release under way. Its caller calls tell.
type releasing struct {
	l       *Lease
	ctx     context.Context // of the caller
	how     End
	err     error // why the lease had ended before; nil if this release has ended it
	removal *core.Removal
	within  *later // for the hooks of the removal; nil if there is no Release hook
	end     func(error)
}

// StartRelease is Release without the wait for the server, so that several leases can be released right after
// each other. The caller must call the returned function once. It waits until ctx ends at most, and returns
// what Release would.
func (l *Lease) StartRelease(ctx context.Context, end End) (wait func() error) {
	return l.startRelease(ctx, end, nil).tell()
}

// startRelease is Release without the hooks, and without the wait for the server. If the lease is released
// together with others, its node is deleted with theirs. No hook delays the delete, or the next holder.
func (l *Lease) startRelease(ctx context.Context, end End, with *parting) *releasing {
	_ = l.Err() // if the clock has run out, the lease was lost before this release
	r := &releasing{l: l, ctx: ctx, how: end}
	if !l.finish(ErrReleased) {
		r.err = l.Err()
		return r
	}
	removing := ctx
	if l.t.hooks().Release != nil {
		r.within = &later{Context: context.WithoutCancel(ctx), known: make(chan struct{})}
		removing = r.within
	}
	r.removal = l.t.release(removing, l, end, with)
	return r
}

// tell calls the hooks for the end of the hold, and for the beginning of the release. The returned function
// waits for the server, and calls the hook for the end of the release.
func (r *releasing) tell() (wait func() error) {
	l := r.l
	if r.err == nil {
		l.tell(ErrReleased)
	} else if errors.Is(r.err, ErrReleased) {
		return r.wait
	}
	var within context.Context
	within, r.end = traceRelease(r.ctx, l.t.hooks(), l.ctx, l.info())
	if r.within != nil {
		r.within.is(within)
	}
	return r.wait
}

func (r *releasing) wait() error {
	err := r.err
	switch {
	case errors.Is(err, ErrReleased):
		return Failed("release", r.l.t.q.dir, err)
	case err == nil && r.removal != nil && r.how == Left:
		r.leave()
		return nil
	case err == nil:
		err = r.await()
	}
	r.end(err)
	if err == nil || r.err != nil { // the error of a loss names the lock
		return err
	}
	return Failed("release", r.l.t.q.dir, err)
}

// leave has the end of the Release hook called once the server has answered, or the session has ended. If there is
// no such hook, nobody has to be told: the log tells of a refusal.
func (r *releasing) leave() {
	if r.within == nil {
		return
	}
	told := func() { r.end(r.await()) }
	if !r.l.t.s.BeginLate(told) {
		go told() // the session has ended, and the removal with it
	}
}

// await waits for the removal, which is nil if the lock was handed over.
func (r *releasing) await() error {
	if r.removal == nil {
		return nil
	}
	select {
	case <-r.removal.Done():
	case <-r.ctx.Done():
		return fmt.Errorf("%w: %w", ErrReleasePending, r.ctx.Err())
	}
	err := r.removal.Err()
	if err != nil && r.l.t.s.Err() != nil {
		return fmt.Errorf("%w: %w", ErrReleasePending, err)
	}
	return err
}

// later is the context for the hooks of a delete that begins before the Release hook is called. It has the
// values of the context that the Release hook returns. Another hook that asks for one of them waits until
// then. Most deletes have been sent by then. Those behind a create are sent after their hook. So if the Release hook blocks, they get the caller's values.
type later struct {
	context.Context // the caller's, without its end
	known           chan struct{}
	within          context.Context // set when known is closed
	late            atomic.Bool     // nobody waits any more
}

// releaseHookPatience is how long the hooks of a delete wait for the Release hook.
const releaseHookPatience = time.Second

func (c *later) is(within context.Context) {
	c.within = within
	close(c.known)
}

func (c *later) Value(key any) any {
	if !c.late.Load() {
		patience := time.NewTimer(releaseHookPatience)
		defer patience.Stop()
		select {
		case <-c.known:
		case <-patience.C:
			c.late.Store(true)
		}
	}
	select {
	case <-c.known:
		return c.within.Value(key)
	default:
		return c.Context.Value(key)
	}
}

// Release gives the lease up, and waits for the server.
func (l *Lease) Release(ctx context.Context, end End) error {
	return l.startRelease(ctx, end, nil).tell()()
}

// StartReleases is StartRelease for several leases. It releases the last one first. The nodes of one session
// are deleted by one transaction, or each by itself if that fails.
func StartReleases(ctx context.Context, leases []*Lease, end End) (waits []func() error) {
	var with parting
	var all []*releasing
	for _, l := range slices.Backward(leases) {
		all = append(all, l.startRelease(ctx, end, &with))
	}
	with.start(ctx)
	for _, r := range all {
		waits = append(waits, r.tell())
	}
	return waits
}
