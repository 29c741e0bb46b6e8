package simulation

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// candidate makes the elections of one worker.
type candidate struct {
	m    *session.Manager
	path string
}

// Acquire takes the mutex that an election is, with which the checks at the end look whether it can be used.
func (c candidate) Acquire(ctx context.Context) (*queue.Lease, error) {
	mx, err := zklock.New(c.m, c.path)
	if err != nil {
		return nil, err
	}
	return mx.Acquire(ctx)
}

func (c candidate) TryAcquire(ctx context.Context) (*queue.Lease, error) { return c.Acquire(ctx) }

// campaign is one Run.
type campaign struct {
	k    *worker
	c    *call
	e    *election.Election
	most int // so many terms, if nothing ends Run before

	terms  int
	ended  time.Time    // of the last term, if WithTermEnd tells
	inside atomic.Bool  // lead runs
	now    atomic.Value // the context of lead
}

var errDone = errors.New("enough terms")

// candidateTurn runs an election for some terms.
func (k *worker) candidateTurn(c *call, of candidate) {
	r := &campaign{k: k, c: c, most: 1 + k.rng.IntN(3)}
	opts := []election.Option{election.WithID(k.name)}
	told := k.rng.IntN(2) == 0
	if told {
		opts = append(opts, election.WithTermEnd(r.over))
	}
	var err error
	if r.e, err = election.New(of.m, of.path, opts...); err != nil {
		k.world.checks.fail("open %s: %v", c.path, err)
		return
	}
	// The node of a candidate has data of its own, so the library does not ask for a label: see seriesContext.
	byGoroutine.Store(goroutine(), c.ctx.Value(seriesKey{}))
	for range 1 + k.rng.IntN(3) {
		r.terms, r.ended = 0, time.Time{}
		k.world.checks.begin(c)
		k.now("Run " + c.path)
		k.log("Run %s", c.path)
		stop := r.resignLater()
		err := r.run()
		stop()
		k.log("Run %s: %s, after %d terms", c.path, kindOfError(err), r.terms)
		r.check(err, told)
		if !errors.Is(err, errDone) {
			return
		}
	}
}

// run calls Run, whose function may panic.
func (r *campaign) run() (err error) {
	if tripped(func() { err = r.e.Run(r.c.ctx, r.lead) }) {
		return errDone
	}
	switch end := r.c.ctx.Err(); { // nil is for a shutdown
	case err != nil:
		return err
	case end != nil:
		return end
	case r.k.m.leaves(r.c.mgr):
		return session.ErrClosed
	}
	return nil
}

// lead is a term.
func (r *campaign) lead(ctx context.Context) error {
	k, w := r.k, r.k.world
	lease, _ := queue.LeaseFrom(ctx)
	r.terms++
	r.now.Store(&ctx)
	r.inside.Store(true)
	defer r.inside.Store(false)
	if r.terms == 1 {
		w.checks.finish(r.c, true, nil)
	}
	k.log("leads by %s", lease.Path())
	h := w.checks.held(r.c, func() bool { return r.leads(ctx) })
	defer w.checks.termOver(h)
	k.hold(h)
	how := k.rng.IntN(8)
	k.now("the end of a term of " + r.c.path)
	switch {
	case how == 0:
		panic(errTripped)
	case r.terms >= r.most:
		return errDone
	}
	return nil
}

// leads reports whether a term goes on, and checks that it may.
func (r *campaign) leads(ctx context.Context) bool {
	leader := r.e.IsLeader()
	if ctx.Err() != nil {
		return false
	}
	if !leader {
		r.k.world.checks.fail("%s: the context of a term is alive, and IsLeader is false", r.k.name)
	}
	return true
}

// resignLater has another goroutine call Resign, in some campaigns.
func (r *campaign) resignLater() (stop func() bool) {
	k := r.k
	if k.rng.IntN(3) > 0 {
		return func() bool { return true }
	}
	at := slot(time.Now().Add(k.upTo(8*k.world.plan.busy)), k.m.party, mix(k.world.seed, "resign", k.id, time.Now()))
	return time.AfterFunc(time.Until(at), func() {
		inside := r.inside.Load()
		resigned := r.e.Resign()
		k.log("Resign: %v", resigned)
		if resigned != inside {
			k.world.checks.fail("%s: Resign is %v, and that there is a term to end is %v", k.name, resigned, inside)
		}
		if resigned && (*r.now.Load().(*context.Context)).Err() == nil {
			k.world.checks.fail("%s: a term goes on after Resign", k.name)
		}
	}).Stop
}

// over is told of each end of a term.
func (r *campaign) over(err error) error {
	r.ended = time.Now()
	r.k.log("a term of %s ends: %s", r.c.path, kindOfError(err))
	switch {
	case err == nil, lost(err), errors.Is(err, errDone), errors.Is(err, election.ErrResigned):
	default:
		r.k.world.checks.fail("%s: a term ends with %v", r.k.name, err)
	}
	if r.terms >= r.most {
		return errDone
	}
	return nil
}

// check checks the result of Run.
func (r *campaign) check(err error, told bool) {
	k, cs, now := r.k, r.k.world.checks, time.Now()
	if r.terms == 0 && !(told && !r.ended.IsZero()) {
		cs.finish(r.c, false, err)
		return
	}
	cs.mu.Lock()
	r.c.leaveLocked()
	cs.mu.Unlock()
	switch {
	case errors.Is(err, errDone):
	case err == nil:
		cs.fail("%s: Run returns nil", k.name)
	case r.c.ctx.Err() != nil && errors.Is(err, r.c.ctx.Err()):
		if end := r.c.deadline; told && !end.IsZero() && now.After(later(end, r.ended).Add(time.Millisecond)) {
			cs.fail("%s: Run returns %v after it was cancelled", k.name, now.Sub(end))
		}
	case errors.Is(err, session.ErrClosed) && k.m.leaves(r.c.mgr):
	case cs.expected(r.c, err):
	default:
		cs.fail("%s: Run fails after %d terms: %v", k.name, r.terms, err)
	}
	if r.e.IsLeader() || r.e.Resign() {
		cs.fail("%s: there is a term after Run has returned", k.name)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// termOver notes that a leader is about to give the leadership up. Its next term has a node of its own.
func (cs *checks) termOver(h *holding) {
	h.end()
	cs.mu.Lock()
	defer cs.mu.Unlock()
	h.c.nodes = nil
}
