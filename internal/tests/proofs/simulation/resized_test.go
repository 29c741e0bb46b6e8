package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
)

// sizes are the limits that workers set. The low ones come more often, so that some wait.
var sizes = []int{1, 1, 2, 2, 3, 4, 6}

// resize changes the limit of a semaphore, once or a few times in a row, so that a client with a slow
// connection hears of several changes at once.
func (k *worker) resize(mgr *session.Manager) {
	w := k.world
	dir := w.kind.dirs(w.plan.paths[k.rng.IntN(len(w.plan.paths))], true)[0]
	s, err := semaphore.New(mgr, dir, leases)
	if err != nil {
		w.checks.fail("open %s: %v", dir, err)
		return
	}
	for range 1 + k.rng.IntN(3) {
		n, change := sizes[k.rng.IntN(len(sizes))], s.Resize
		if k.rng.IntN(6) == 0 {
			n, change = leases, func(ctx context.Context, _ int) error { return s.ResetLimit(ctx) }
		}
		if !w.limits.begin(dir, n) || !k.resizeTo(mgr, s, n, change) {
			return
		}
		k.sleep(k.upTo(300 * time.Millisecond))
	}
}

// resizeTo reports whether it has changed the limit, and whether it knows that.
func (k *worker) resizeTo(mgr *session.Manager, s *semaphore.Semaphore, n int, change func(context.Context, int) error) bool {
	w, dir := k.world, s.Path()
	d := time.Second + k.upTo(10*time.Second)
	at := slot(time.Now().Add(d), k.m.party, mix(w.seed, append([]any{"resize", time.Now()}, k.apart()...)...))
	ctx, cancel := context.WithCancel(k.life)
	defer cancel()
	stop := time.AfterFunc(time.Until(at), cancel)
	defer stop.Stop()
	k.now("Resize " + dir)
	k.log("Resize %s to %d", dir, n)
	k.calls++
	resizer := &worker{world: w, m: k.m, id: -100 - k.id} // its nodes are none of the worker's calls
	byGoroutine.Store(goroutine(), &series{of: resizer, call: k.calls})
	err := change(ctx, n)
	w.limits.end(dir, err == nil)
	k.log("Resize %s to %d: %s", dir, n, kindOfError(err))
	switch {
	case err == nil:
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
	case errors.Is(err, session.ErrClosed) && k.m.leaves(mgr):
	case errors.Is(err, session.ErrSequence), errors.Is(err, session.ErrTooManyNodes): // it needs a node
	case errors.Is(err, queue.ErrConflict) && (w.kind.habits != nil || w.foreigners != nil): // to lower the limit is an acquisition
	default:
		w.checks.fail("%s: Resize fails: %v", k.name, err)
	}
	if time.Now().After(at.Add(time.Millisecond)) {
		w.checks.fail("%s: Resize returns %v after it was cancelled", k.name, time.Since(at))
	}
	if err != nil {
		return false
	}
	set := time.Now()
	got, err := s.Limit(ctx) // somebody else may be changing it
	if err == nil && !w.limits.wasSince(set, dir, got) {
		w.checks.fail("%s: the limit of %s is %d after it was set to %d", k.name, dir, got, n)
	}
	return err == nil
}

// giveUp releases a lease when it is revoked.
func giveUp(l *queue.Lease) {
	select {
	case <-l.Revoked():
	case <-l.Done():
		return
	}
	ctx, cancel := within(time.Second)
	defer cancel()
	_ = l.Release(ctx) // it may be lost, or released
}
