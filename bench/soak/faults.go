package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/referee"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	calm      = time.Second            // the longest time between two faults of a client
	armedFor  = 500 * time.Millisecond // how long a fault waits for its request
	briefly   = sessionTimeout / 2     // no session is lost in it, if all goes well
	tooLong   = 3 * sessionTimeout / 2 // every session is
	serverMax = 3 * sessionTimeout / 4
)

// trouble strikes one client with faults, one at a time.
type trouble struct {
	c       *client
	rng     *rand.Rand
	referee *referee.Referee
	tally   *tally
}

// make goes on until ctx ends, and heals all in the end.
func (t *trouble) make(ctx context.Context) error {
	for wait(ctx, upTo(t.rng, calm)) {
		name, f := t.next()
		t.tally.fault(name)
		if err := f(ctx); err != nil {
			return fmt.Errorf("%s at %s: %w", name, t.c.name, err)
		}
	}
	return nil
}

func (t *trouble) next() (string, func(context.Context) error) {
	p := t.c.proxy.Load()
	switch n := t.rng.IntN(100); {
	case n < 20:
		return "disconnections", func(context.Context) error { p.Disconnect(); return nil }
	case n < 35:
		return "cuts before a request", t.armed(p.CutBefore, requests, 0)
	case n < 55:
		return "cuts after a commit", t.armed(p.CutAfterCommit, append(requests, zktest.OpNotification), 0)
	case n < 63:
		return "requests held back", t.armed(p.HoldRequest, requests, briefly)
	case n < 71:
		return "replies held back", t.armed(p.HoldReply, append(requests, zktest.OpNotification), briefly)
	case n < 79:
		return "short partitions", t.partition(briefly)
	case n < 87:
		return "partitions longer than the timeout", t.partition(tooLong)
	case n < 92:
		return "refusals of connections", t.refuse
	case n < 96:
		return "slow networks", t.slow
	default:
		return "sessions expired by force", t.expire
	}
}

// requests are the kinds at which a fault can strike.
var requests = []zktest.Op{
	zktest.OpCreate, zktest.OpCreate, zktest.OpCreateContainer, zktest.OpDelete, zktest.OpGetData, zktest.OpSetWatches,
	zktest.OpGetChildren2, zktest.OpSync, zktest.OpPing, zktest.OpMulti, zktest.OpConnect,
	zktest.OpSASL,
}

// armed waits for a request at which to strike, and releases a held request after a while.
func (t *trouble) armed(arm func(zktest.Match) *zktest.Fault, ops []zktest.Op, held time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		f := arm(zktest.Any(ops[t.rng.IntN(len(ops))]))
		defer f.Release()
		timer := time.NewTimer(armedFor)
		defer timer.Stop()
		select {
		case <-f.Hit():
			if held > 0 {
				wait(ctx, upTo(t.rng, held))
			}
		case <-timer.C:
		case <-ctx.Done():
		}
		return nil
	}
}

func (t *trouble) partition(longest time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		t.c.proxy.Load().Blackhole([]zktest.Direction{zktest.ToServer, zktest.ToClient, zktest.Both}[t.rng.IntN(3)])
		defer t.c.proxy.Load().Heal()
		wait(ctx, longest/2+upTo(t.rng, longest/2))
		return nil
	}
}

func (t *trouble) refuse(ctx context.Context) error {
	t.c.proxy.Load().Refuse(true)
	defer t.c.proxy.Load().Heal()
	t.c.proxy.Load().Disconnect()
	wait(ctx, upTo(t.rng, briefly))
	return nil
}

func (t *trouble) slow(ctx context.Context) error {
	t.c.proxy.Load().Delay(upTo(t.rng, 50*time.Millisecond))
	defer t.c.proxy.Load().Delay(0)
	wait(ctx, upTo(t.rng, briefly))
	return nil
}

// expire ends the session as an operator might, and waits until the client knows.
func (t *trouble) expire(ctx context.Context) error {
	s, err := t.c.m.Session(ctx)
	if err != nil {
		return nil // closed, or it is over
	}
	t.referee.Forgive(t.c.name)
	defer t.referee.Trust(t.c.name)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// The server can be paused, or be about to expire the session by itself. Then it closes the
	// connection of this request. So the request is repeated until the client has noticed.
	for {
		err := t.c.proxy.Load().Expire(ctx, s.ID())
		if ctx.Err() != nil {
			return fmt.Errorf("the client has noticed nothing in %v: %w", patience, errors.Join(err, ctx.Err()))
		}
		again := time.NewTimer(sessionTimeout)
		select {
		case <-s.Done():
			again.Stop()
			return nil
		case <-again.C:
		}
	}
}

// pauseServer stops the server now and then, for all clients.
func pauseServer(ctx context.Context, e *zktest.Ensemble, rng *rand.Rand, t *tally) error {
	for wait(ctx, upTo(rng, 10*calm)) {
		if err := e.Pause(0); err != nil {
			return err
		}
		t.fault("pauses of the server")
		wait(ctx, upTo(rng, serverMax))
		if err := e.Resume(0); err != nil {
			return err
		}
	}
	return nil
}

// upTo returns a random time that is shorter than d.
func upTo(rng *rand.Rand, d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }

// wait reports whether the time has passed without ctx ending.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
