package faultmatrix

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// fault is something that goes wrong at a step.
type fault struct {
	name string
	// arm makes a fault of the proxy, which strikes at the step.
	arm func(*zktest.Proxy, zktest.Match) *zktest.Fault
	// act is called when that has struck, with the session of the request. It returns the
	// function that heals it. Both may be nil.
	act func(ctx context.Context, c *cell, session int64) (heal func() error, err error)
	// lasts is how long the fault lasts.
	lasts time.Duration
	// pauses says that the fault meets all clients of the server.
	pauses bool
	// forces says that it ends a session by force, which its client cannot foresee.
	forces bool
}

func allFaults() []fault {
	fs := []fault{
		{name: "cut-before", arm: (*zktest.Proxy).CutBefore},
		{name: "cut-after", arm: (*zktest.Proxy).CutAfterCommit},
		{name: "expire", arm: (*zktest.Proxy).HoldRequest, act: expire, forces: true},
	}
	for _, span := range []struct {
		name  string
		lasts time.Duration
	}{{"half", timeout / 2}, {"twice", 2 * timeout}} {
		fs = append(fs,
			fault{name: "pause-" + span.name, arm: (*zktest.Proxy).HoldRequest, act: pause, lasts: span.lasts, pauses: true},
			fault{name: "to-server-" + span.name, arm: (*zktest.Proxy).HoldRequest, act: blackhole(zktest.ToServer), lasts: span.lasts},
			fault{name: "to-client-" + span.name, arm: (*zktest.Proxy).HoldRequest, act: blackhole(zktest.ToClient), lasts: span.lasts},
		)
	}
	return fs
}

// expire ends the session by force, as an operator does, and is over when our manager has
// heard of it.
func expire(ctx context.Context, c *cell, session int64) (func() error, error) {
	if err := c.proxy.Expire(ctx, session); err != nil {
		return nil, err
	}
	s, err := c.ours.Session(ctx)
	if err != nil || s.ID() != session {
		return nil, err
	}
	select {
	case <-s.Done():
		return nil, nil
	case <-ctx.Done():
		return nil, errors.New("the session has ended, and nobody is told")
	}
}

func pause(_ context.Context, c *cell, _ int64) (func() error, error) {
	return func() error { return c.site.server.Resume(0) }, c.site.server.Pause(0)
}

func blackhole(d zktest.Direction) func(context.Context, *cell, int64) (func() error, error) {
	return func(_ context.Context, c *cell, _ int64) (func() error, error) {
		c.proxy.Blackhole(d)
		return func() error { c.proxy.Heal(); return nil }, nil
	}
}

// meets reports whether the fault can strike a request. Nobody can end a session whose handshake is not
// answered.
func (f fault) meets(r zktest.Request) bool { return !f.forces || r.Session != 0 }

func disconnect(_ context.Context, c *cell, _ int64) (func() error, error) {
	c.proxy.Disconnect()
	return nil, nil
}

// at returns the fault for a step. An event has no request to hold back, so the event is held, or
// cut off, on its way to the client. In a moment with nothing on its way there is one way to cut.
func (f fault) at(st step) (fault, bool) {
	switch {
	case st.isMoment():
		if f.act == nil {
			f.act = disconnect
		}
		return f, f.name != "cut-after"
	case st.op == zktest.OpNotification && f.act != nil:
		f.arm = (*zktest.Proxy).HoldReply
	case st.op == zktest.OpNotification:
		return f, f.name != "cut-before"
	}
	return f, true
}

// strike is a fault that is armed. The zero strike is no fault, and is never over.
type strike struct {
	hit  <-chan struct{} // closed when it has struck
	over <-chan struct{} // closed when it is healed, too
	err  error           // once over: what did not work
}

// start arms the fault at a step of a cell, and heals it in the end. If ctx ends before the fault has
// struck, it is over without that.
func (f fault) start(ctx context.Context, c *cell, at step) *strike {
	if at.isMoment() {
		return f.startWhile(ctx, c, at)
	}
	steps := c.newSteps()
	return f.startWhen(ctx, c, func(r zktest.Request) bool {
		st, ok := steps.next(r)
		return ok && st == at
	})
}

// startWhen is start at the first request that matches.
func (f fault) startWhen(ctx context.Context, c *cell, match zktest.Match) *strike {
	var session atomic.Int64
	armed := f.arm(c.proxy, func(r zktest.Request) bool {
		if !match(r) || !f.meets(r) {
			return false
		}
		session.Store(r.Session)
		return true
	})
	over := make(chan struct{})
	k := &strike{hit: armed.Hit(), over: over}
	go func() {
		defer close(over)
		defer armed.Release()
		select {
		case <-armed.Hit():
			c.logf("%s strikes", f.name)
			heal, err := f.begin(ctx, c, session.Load())
			armed.Release() // it meets what has become of the way
			k.err = errors.Join(err, f.end(ctx, c, heal))
		case <-ctx.Done():
		}
	}()
	return k
}

// startWhile is start for a step that is a moment.
func (f fault) startWhile(ctx context.Context, c *cell, at step) *strike {
	moment := map[step]*signal{whileWaiting: &c.waiting, whileHolding: &c.holding}[at].ch
	hit, over := make(chan struct{}), make(chan struct{})
	k := &strike{hit: hit, over: over}
	go func() {
		defer close(over)
		select {
		case <-moment:
			c.logf("%s strikes", f.name)
			sessions := c.proxy.Sessions()
			heal, err := f.begin(ctx, c, sessions[len(sessions)-1])
			close(hit)
			k.err = errors.Join(err, f.end(ctx, c, heal))
		case <-ctx.Done():
		}
	}()
	return k
}

func (f fault) begin(ctx context.Context, c *cell, session int64) (heal func() error, err error) {
	if f.act == nil {
		return nil, nil // the proxy has done it
	}
	return f.act(ctx, c, session)
}

// end heals the fault when its time has come.
func (f fault) end(ctx context.Context, c *cell, heal func() error) error {
	defer c.logf("%s is over", f.name)
	if heal == nil {
		return nil
	}
	timer := time.NewTimer(f.lasts)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return heal()
}

// struck reports whether the fault has struck.
func (k *strike) struck() bool { return closed(k.hit) }

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// wait waits until the fault is over.
func (k *strike) wait() {
	if k.over != nil {
		<-k.over
	}
}
