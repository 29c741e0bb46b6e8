package simulation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// This file has programs that misuse locks: hooks that block, functions of a Do that panic, Unlock without Lock, and
// sessions that may have hardly any nodes.

var panicsFlag = flag.Bool("panics", true, "functions given to Do panic, in the kinds that have that")

// tripwire makes the function of one Do panic, or end its goroutine. Or else it makes one hook of a call block.
type tripwire struct {
	left   atomic.Int64 // hooks until then
	inside bool         // the function given to Do does it
	exit   bool
	block  time.Duration // for how long a hook blocks; 0 if none does
}

// errTripped is what functions panic with.
var errTripped = errors.New("the function of a Do panics")

// trip ends the goroutine.
func (t *tripwire) trip() {
	if t.exit {
		runtime.Goexit()
	}
	panic(errTripped)
}

// tripped calls f, whose function of a Do may panic, and recovers, as net/http does for its handlers. It reports whether
// that function did.
func (k *worker) tripped(f func()) bool {
	if !k.world.kind.hostile || !*panicsFlag || k.rng.IntN(8) > 0 {
		f()
		return false
	}
	left := k.rng.IntN(10)
	t := &tripwire{inside: left%2 == 0, exit: k.rng.IntN(3) == 0}
	if k.world.kind.blocking && k.rng.IntN(2) == 0 {
		t.inside, t.block = false, time.Duration(1+k.rng.IntN(longestBlock))*time.Millisecond
	}
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

// survives calls f, whose hooks may block. That ends no call.
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
	if t := k.wire.Load(); t != nil && t.block > 0 && t.left.Add(-1) == -1 {
		k.blocked.Add(int64(t.block))
		k.world.hooked.Store(max(k.world.hooked.Load(), time.Now().Add(t.block).UnixNano()))
		k.log("a hook blocks for %v", t.block)
		time.Sleep(t.block)
	}
}

// longestBlock is for how many milliseconds a hook blocks at most. Far longer, and what a hook holds up would not be
// prompt.
const longestBlock = 100

// hostileTo returns the hooks, and others, with tripwires.
func hostileTo(t session.Trace) session.Trace {
	traceparent, request, hold := t.Traceparent, t.Request, t.Hold
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
	t.Hold = func(ctx context.Context, h session.HoldInfo) func(error) {
		end := hold(ctx, h)
		trip(ctx)
		return end
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
type doer struct{ locker }

func (d doer) do(ctx context.Context, f func(context.Context) error) error {
	return d.locker.(interface {
		Do(ctx context.Context, f func(context.Context) error) error
	}).Do(ctx, f)
}

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
		err = d.do(c.ctx, func(inside context.Context) error {
			defer over()
			entered = true
			k.log("Do %s: inside", c.path)
			w.checks.finish(c, true, nil)
			h = w.checks.held(c, func() bool { return inside.Err() == nil })
			for _, l := range leasesOf(inside) {
				k.askToken(c, l)
			}
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

// leasesOf returns the leases that the function of a Do has.
func leasesOf(inside context.Context) []*queue.Lease {
	if l, ok := zklock.MultiLeaseFrom(inside); ok {
		return l.Leases()
	}
	if l, ok := queue.LeaseFrom(inside); ok {
		return []*queue.Lease{l}
	}
	return nil
}

// expected reports whether a call of this kind may fail with the error.
func (cs *checks) expected(c *call, err error) bool {
	kd := cs.w.kind
	switch {
	case errors.Is(err, queue.ErrReleased):
		return kd.revocable
	case errors.Is(err, session.ErrInvalid):
		return cs.aboveLimit(c)
	case errors.Is(err, queue.ErrConflict) && cs.met(c, conflicts):
		return true
	case kd.parts == nil:
		return errors.Is(err, queue.ErrSequence) && cs.w.sequences[c.path] > restart
	case errors.Is(err, queue.ErrConflict):
		return cs.strangers(c)
	case errors.Is(err, session.ErrTooManyNodes) && kd.usages != nil:
		// At most half of the nodes are places that nobody uses, and these make no room.
		return c.m.maxNodes > 0 && cs.wanted(c) > c.m.maxNodes-c.m.maxNodes/2
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

// strangers reports whether there was a call of another kind of lock in a directory of this one, or a Resize that lowers. Until
// the calm, the node of any earlier call may still be there: without a leader no session expires. A call
// whose function has panicked can leave work behind that ends later.
func (cs *checks) strangers(c *call) bool {
	since := cs.w.calmSince()
	chaos := since.IsZero() || c.began.Before(since)
	for _, p := range cs.w.kind.parts(c) {
		if !isCount(p.mode) && cs.w.limits.taken(p.dir, c.began.Add(-cs.shortly(c))) > 0 {
			return true
		}
	}
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

// wanted returns how many nodes the workers of a session want, together with a call that has failed. In chaos anything is
// possible.
func (cs *checks) wanted(c *call) int {
	if since := cs.w.calmSince(); since.IsZero() || c.began.Before(since) {
		return math.MaxInt
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	parts := map[*call]int{c: len(cs.w.kind.partsOf(c))}
	for _, h := range cs.places {
		for _, o := range h.entries {
			if o.c.m == c.m && (!o.c.finished || o.end.IsZero() || o.end.After(c.began.Add(-cs.shortly(c)))) {
				parts[o.c] = len(cs.w.kind.partsOf(o.c))
			}
		}
	}
	for _, h := range cs.holdings { // a grant that nobody could use may have ended before the one that is held
		if h.c.m == c.m {
			parts[h.c] = len(cs.w.kind.partsOf(h.c))
		}
	}
	n := 0
	for _, one := range parts {
		n += one
	}
	for _, k := range cs.w.workers {
		if k.m == c.m && (k.resizing || k.resized.After(c.began.Add(-cs.shortly(c)))) {
			n++
		}
	}
	return n
}

// crowded says whether the session of a member has more nodes than it may have.
func (w *world) crowded(m *member) (wrong []string) {
	if w.kind.usages == nil || m.maxNodes == 0 {
		return nil
	}
	own, n := sessionName(m.sessionNow()), 0
	for _, c := range w.contenders("") {
		if c.session == own {
			n++
		}
	}
	if n > m.maxNodes {
		wrong = append(wrong, fmt.Sprintf("%s may have %d nodes, and has %d", m.name, m.maxNodes, n))
	}
	return wrong
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
