package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// This file has programs that misuse locks: functions of a Do that panic, Unlock without Lock, and sessions that may have
// hardly any nodes.

// errTripped is what functions panic with.
var errTripped = errors.New("the function of a Do panics")

// tripped calls f, whose function of a Do may panic, and recovers, as net/http does for its handlers. It reports whether
// that function did.
func tripped(f func()) (yes bool) {
	defer func() {
		r := recover()
		if yes = r == errTripped; r != nil && !yes {
			panic(r)
		}
	}()
	f()
	return false
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
	trips := k.rng.IntN(16) == 0
	panicked := tripped(func() {
		err = d.do(c.ctx, func(inside context.Context) error {
			entered = true
			k.log("Do %s: inside", c.path)
			w.checks.finish(c, true, nil)
			h = w.checks.held(c, func() bool { return inside.Err() == nil })
			k.hold(h)
			h.end()
			if trips {
				panic(errTripped)
			}
			return nil
		})
	})
	k.log("Do %s: %s, its function panics: %v", c.path, kindOfError(err), panicked)
	switch {
	case panicked:
		w.checks.drop(c)
	case !entered:
		w.checks.finish(c, false, err)
	case err != nil && !lost(err) && !k.revoked(err):
		w.checks.fail("%s: Do fails: %v", k.name, err)
	}
}

// expected reports whether a call of this kind may fail with the error.
func (cs *checks) expected(c *call, err error) bool {
	switch {
	case errors.Is(err, queue.ErrReleased):
		return cs.w.kind.revocable
	case errors.Is(err, session.ErrInvalid):
		return cs.aboveLimit(c)
	case errors.Is(err, queue.ErrConflict):
		return cs.strangers(c)
	case errors.Is(err, session.ErrTooManyNodes):
		return c.m.maxNodes > 0
	case errors.Is(err, queue.ErrSequence):
		return slices.ContainsFunc(cs.w.kind.partsOf(c), func(p part) bool { return cs.w.sequences[p.dir] > restart })
	}
	return false
}

// aboveLimit reports whether a call asks for more leases than the limit may have been.
func (cs *checks) aboveLimit(c *call) bool {
	return slices.ContainsFunc(cs.w.kind.partsOf(c), func(p part) bool {
		low := cs.w.limits.lowest(p.dir, c.began)
		return low > 0 && isCount(p.mode) && atoi(p.mode) > low
	})
}

// strangers reports whether there was a call of another kind of lock in a directory of this one, or a Resize that lowers. Until
// the calm, the node of any earlier call may still be there: without a leader no session expires. A call
// whose function has panicked can leave work behind that ends later.
func (cs *checks) strangers(c *call) bool {
	since := cs.w.calmSince()
	chaos := since.IsZero() || c.began.Before(since)
	for _, p := range cs.w.kind.partsOf(c) {
		if !isCount(p.mode) && cs.w.limits.taken(p.dir, c.began.Add(-cs.w.shortly(c.began))) > 0 {
			return true
		}
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.ContainsFunc(cs.entries[c.path], func(o *acquisition) bool {
		if o.c == c || !chaos && !o.c.dropped && !o.end.IsZero() && o.end.Before(c.began.Add(-cs.w.shortly(c.began))) {
			return false
		}
		for _, p := range cs.w.kind.partsOf(c) {
			for _, q := range cs.w.kind.partsOf(o.c) {
				if p.dir == q.dir && typeOf(p.mode) != typeOf(q.mode) {
					return true
				}
			}
		}
		return false
	})
}

// crowded says whether the session of a member has more nodes than it may have.
func (w *world) crowded(m *member) (wrong []string) {
	if m.maxNodes == 0 {
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
