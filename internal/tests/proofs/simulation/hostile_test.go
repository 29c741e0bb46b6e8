package simulation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// This file has programs that misuse locks: hooks that panic, Unlock without Lock, and sessions
// that may have hardly any nodes.

var panicsFlag = flag.Bool("panics", true, "hooks and functions given to Do panic, in the kinds that have that")

// tripwire makes the hooks of one call panic, or end their goroutines, and the function given to Do.
type tripwire struct {
	left   atomic.Int64 // hooks until then
	inside bool         // the function given to Do does it
	exit   bool
}

// errTripped is what they panic with.
var errTripped = errors.New("a hook panics")

// trip ends the goroutine.
func (t *tripwire) trip() {
	if t.exit {
		runtime.Goexit()
	}
	panic(errTripped)
}

// tripped calls f, whose hooks and function may panic, and recovers, as net/http does for its handlers. It reports whether
// the function did. Hooks do not matter: the library survives them.
func (k *worker) tripped(f func()) bool {
	if !k.world.kind.hostile || !*panicsFlag || k.rng.IntN(8) > 0 {
		f()
		return false
	}
	left := k.rng.IntN(10)
	t := &tripwire{inside: left%2 == 0, exit: k.rng.IntN(3) == 0}
	t.left.Store(int64(left))
	ended, done := false, make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil && r != errTripped {
				panic(r)
			}
		}()
		defer byGoroutine.Delete(goroutine())
		k.wire.Store(t)
		defer k.wire.Store(nil)
		f()
		ended = true
	}()
	<-done
	return !ended
}

// survives calls f, whose hooks may panic. That ends no call.
func (k *worker) survives(what string, f func()) {
	if k.tripped(f) {
		k.world.checks.fail("%s: a hook ends %s", k.name, what)
	}
}

// trip is called by hooks, with their context.
func trip(ctx context.Context) {
	k, ok := ctx.Value(workerKey{}).(*worker)
	if !ok {
		return
	}
	if t := k.wire.Load(); t != nil && t.left.Add(-1) < 0 {
		t.trip()
	}
}

// hostileTo returns the hooks, and others, with tripwires. Those of Hold have none, since the checks listen to them.
func hostileTo(t session.Trace) session.Trace {
	traceparent, request := t.Traceparent, t.Request
	after := func(ctx context.Context, f func(error)) func(error) {
		return func(err error) {
			f(err)
			trip(ctx)
		}
	}
	nothing := func(error) {}
	t.Traceparent = func(ctx context.Context) string {
		trip(ctx)
		return traceparent(ctx)
	}
	t.Request = func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
		within, end := request(ctx, r)
		trip(ctx)
		return within, after(ctx, end)
	}
	t.Acquire = func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
		trip(ctx)
		return ctx, func(session.AcquireResult) { trip(ctx) }
	}
	t.Watch = func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
		trip(ctx)
		return ctx, after(ctx, nothing)
	}
	t.Release = func(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) {
		trip(ctx)
		return ctx, after(ctx, nothing)
	}
	t.Loss = func(ctx context.Context, _ session.HoldInfo, _ error) { trip(ctx) }
	t.Retry = func(ctx context.Context, _ session.RetryInfo) { trip(ctx) }
	return t
}

// doer is a lock that workers of a manager share, and take by Do alone.
type doer struct{ *zklock.Mutex }

// doTurn takes a lock by Do, or calls Unlock, which has nothing to give back.
func (k *worker) doTurn(c *call, d doer) {
	w := k.world
	if k.rng.IntN(4) == 0 {
		err := d.Unlock()
		k.log("stray Unlock %s: %v", c.path, err)
		if !errors.Is(err, zklock.ErrNotHeld) {
			w.checks.fail("%s: Unlock gives back what a Do holds: %v", k.name, err)
		}
		return
	}
	w.checks.begin(c)
	k.now("Do " + c.path)
	k.log("Do %s", c.path)
	entered := false
	var h *holding
	var err error
	over := func() {
		if h != nil && !h.over {
			h.end()
		}
	}
	tripped := k.tripped(func() {
		err = d.Do(c.ctx, func(inside context.Context) error {
			defer over()
			entered = true
			k.log("Do %s: inside", c.path)
			w.checks.finish(c, true, nil)
			h = w.checks.held(c, func() bool { return inside.Err() == nil })
			k.hold(h)
			if t := k.wire.Load(); t != nil && t.inside {
				t.trip()
			}
			return nil
		})
	})
	over()
	k.log("Do %s: %s, its function panics: %v", c.path, kindOfError(err), tripped)
	switch {
	case tripped:
		w.checks.drop(c)
	case !entered:
		w.checks.finish(c, false, err)
	case err != nil && !lost(err) && !k.revoked(err):
		w.checks.fail("%s: Do fails: %v", k.name, err)
	}
}

// expected reports whether a call of this kind may fail with the error.
func (cs *checks) expected(c *call, err error) bool {
	kd := cs.w.kind
	switch {
	case errors.Is(err, queue.ErrReleased):
		return kd.revocable
	case errors.Is(err, session.ErrInvalid):
		return cs.aboveLimit(c)
	case kd.parts == nil:
		return errors.Is(err, queue.ErrSequence) && cs.w.sequences[c.path] > restart
	case errors.Is(err, queue.ErrConflict):
		return cs.strangers(c)
	case errors.Is(err, session.ErrTooManyNodes):
		return c.m.maxNodes > 0 && cs.full(c)
	case errors.Is(err, queue.ErrSequence):
		return slices.ContainsFunc(kd.parts(c), func(p part) bool { return cs.w.sequences[p.dir] > restart })
	}
	return false
}

// aboveLimit reports whether a call asks for more leases than the limit may have been.
func (cs *checks) aboveLimit(c *call) bool {
	return slices.ContainsFunc(cs.w.kind.partsOf(c), func(p part) bool {
		low, ok := cs.w.limits.lowest(p.dir, c.began)
		return ok && isCount(p.mode) && atoi(p.mode) > low
	})
}

// strangers reports whether there was a call of another kind of lock in a directory of this one. Until
// the calm, the node of any earlier call may still be there: without a leader no session expires. A call
// that a hook has ended can leave work behind that ends later.
func (cs *checks) strangers(c *call) bool {
	since := cs.w.calmSince()
	chaos := since.IsZero() || c.began.Before(since)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.ContainsFunc(cs.placeLocked(c.path).entries, func(o *acquisition) bool {
		if o.c == c || !chaos && !o.c.dropped && !o.end.IsZero() && o.end.Before(c.began.Add(-cs.shortly(c))) {
			return false
		}
		for _, p := range cs.w.kind.parts(c) {
			for _, q := range cs.w.kind.parts(o.c) {
				if p.dir == q.dir && typeOf(p.mode) != typeOf(q.mode) {
					return true
				}
			}
		}
		return false
	})
}

// full reports whether the session of a call may have reached its limit of nodes. In the calm that
// is known.
func (cs *checks) full(c *call) bool {
	if since := cs.w.calmSince(); since.IsZero() || c.began.Before(since) {
		return true
	}
	n := 0
	for _, o := range cs.w.contenders("") {
		if o.session == sessionName(c.m.sessionNow()) {
			n++
		}
	}
	// Every worker may have the nodes of one call on their way in, and those of another on their way out.
	most := 1
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, h := range cs.places {
		for _, o := range h.entries {
			if o.c.m == c.m && (!o.c.finished || o.end.IsZero() || o.end.After(c.began.Add(-cs.shortly(c)))) {
				most = max(most, len(cs.w.kind.partsOf(o.c)))
			}
		}
	}
	return n+2*cs.w.plan.workers*most >= c.m.maxNodes
}

// asProbe returns a context of none of the workers, for calls that are not checked.
func (w *world) asProbe(m *member) (context.Context, context.CancelFunc) {
	w.probes++
	k := &worker{world: w, m: m, id: -w.probes, name: "probe"}
	ctx, cancel := within(30 * time.Second)
	return seriesContext{context.WithValue(ctx, workerKey{}, k), &series{of: k}}, cancel
}

func (k *worker) isProbe() bool { return k.id < 0 }

// probe checks, at the end, that no node is counted that no longer exists.
func (w *world) probe() {
	for _, m := range w.members {
		mgr, err := m.current(context.Background())
		if err != nil || m.maxNodes == 0 {
			continue
		}
		ctx, cancel := w.asProbe(m)
		for i := range m.maxNodes {
			mx, err := zklock.New(mgr, fmt.Sprintf("/probe/%s/%d", m.name, i))
			var l *queue.Lease
			if err == nil {
				l, err = mx.Acquire(ctx)
			}
			if err != nil {
				w.checks.fail("%s: of %d nodes that it may have, number %d fails: %v", m.name, m.maxNodes, i+1, err)
				continue
			}
			defer func() { _ = l.Release(ctx) }() // before cancel
		}
		defer cancel()
	}
}
