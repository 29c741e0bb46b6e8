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
	// forces says that it ends a session by force, which its client cannot foresee.
	forces bool
}

func allFaults() []fault {
	hold := (*zktest.Proxy).HoldRequest
	return []fault{
		{name: "cut-before", arm: (*zktest.Proxy).CutBefore},
		{name: "cut-after", arm: (*zktest.Proxy).CutAfterCommit},
		{name: "expire", arm: hold, act: expire, forces: true},
		{name: "to-server-half", arm: hold, act: blackhole(zktest.ToServer), lasts: timeout / 2},
		{name: "to-client-half", arm: hold, act: blackhole(zktest.ToClient), lasts: timeout / 2},
		{name: "to-server-twice", arm: hold, act: blackhole(zktest.ToServer), lasts: 2 * timeout},
		{name: "to-client-twice", arm: hold, act: blackhole(zktest.ToClient), lasts: 2 * timeout},
	}
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

func blackhole(d zktest.Direction) func(context.Context, *cell, int64) (func() error, error) {
	return func(_ context.Context, c *cell, _ int64) (func() error, error) {
		c.proxy.Blackhole(d)
		return func() error { c.proxy.Heal(); return nil }, nil
	}
}

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
	var session atomic.Int64
	steps := c.newSteps()
	here := func(r zktest.Request) bool {
		// Nobody can end a session whose handshake is not answered.
		if st, ok := steps.next(r); !ok || st != at || f.forces && r.Session == 0 {
			return false
		}
		session.Store(r.Session)
		return true
	}
	hit, over := make(chan struct{}), make(chan struct{})
	k := &strike{hit: hit, over: over}
	var comes <-chan struct{}
	release := func() { close(hit) }
	if at.isMoment() {
		comes = map[step]*signal{whileWaiting: &c.waiting, whileHolding: &c.holding}[at].ch
	} else {
		armed := f.arm(c.proxy, here)
		comes, k.hit, release = armed.Hit(), armed.Hit(), armed.Release
	}
	go func() {
		defer close(over)
		select {
		case <-comes:
		case <-ctx.Done():
			if !at.isMoment() {
				release()
			}
			return
		}
		c.logf("%s strikes", f.name)
		if at.isMoment() {
			sessions := c.proxy.Sessions()
			session.Store(sessions[len(sessions)-1])
		}
		var heal func() error
		var err error
		if f.act != nil { // otherwise the proxy has done it
			heal, err = f.act(ctx, c, session.Load())
		}
		release() // a request meets what has become of the way
		k.err = errors.Join(err, f.end(ctx, c, heal))
	}()
	return k
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
