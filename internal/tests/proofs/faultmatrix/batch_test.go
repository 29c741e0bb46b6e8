package faultmatrix

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// batchLocks is how many locks of one session are taken at once, and given back at once.
const batchLocks = 8

// TestBatch tries each fault at a transaction with the creates of several callers, and at one with their
// deletes. Every caller gets its lock and has one node, nothing is left, and a new client gets each lock
// with a higher token.
func TestBatch(t *testing.T) {
	longtest.Only(t)
	for _, f := range allFaults() {
		for _, at := range []string{"creates", "deletes"} {
			t.Run(f.name+"/"+at, func(t *testing.T) {
				t.Parallel()
				on := shared
				if f.pauses {
					on = alone
				}
				s := on(t)
				for try := 1; ; try++ {
					c := newCell(t, s, &trace{}, timeout)
					err := c.tryBatch(f, at == "deletes")
					if err == nil {
						return
					}
					// On a busy machine the session can be lost before the fault.
					if !errors.Is(err, errNotStruck) || try == batchTries {
						t.Fatalf("%v\n%s", err, c.story())
					}
					t.Log("once again: ", err)
				}
			})
		}
	}
}

// batchTries bounds how often a cell is tried whose fault has not struck. Each try takes the patience for a cell.
const batchTries = 3

func (c *cell) tryBatch(f fault, atDeletes bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.batch(ctx, f, atDeletes)
}

// batch plays one cell.
func (c *cell) batch(ctx context.Context, f fault, atDeletes bool) error {
	(*core.Manager)(c.ours).SetWindow(1)
	locks, err := c.batchedLocks(ctx)
	if err != nil {
		return err
	}
	struck := func(r zktest.Request) bool {
		return r.Op == zktest.OpMulti && len(r.Path) > len(c.base) && r.Path[:len(c.base)] == c.base
	}
	playing, stop := context.WithCancel(ctx)
	var strike *strike
	defer func() {
		stop()
		if strike != nil {
			strike.wait()
		}
	}()
	if !atDeletes {
		strike = f.startWhen(playing, c, struck)
	}
	leases, tokens := make([]*queue.Lease, batchLocks), make([]int64, batchLocks)
	if err := forAll(func(i int) (err error) {
		leases[i], err = locks[i].Acquire(ctx)
		return err
	}); err != nil {
		return fmt.Errorf("acquire: %w", err)
	}
	if err := forAll(func(i int) (err error) {
		tokens[i], err = leases[i].Token(ctx)
		return errors.Join(c.oneNode(ctx, i, leases[i]), unlessLost(err))
	}); err != nil {
		return err
	}
	if atDeletes {
		strike = f.startWhen(playing, c, struck)
	}
	if err := forAll(func(i int) error { return unlessLost(leases[i].Release(ctx)) }); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	select {
	case <-strike.over:
	case <-ctx.Done():
		return errNotStruck
	}
	return errors.Join(strike.err, c.emptyAgain(ctx), c.freshTokens(ctx, tokens))
}

// forAll calls f at once for each of the locks.
func forAll(f func(i int) error) error {
	var all errgroup.Group
	for i := range batchLocks {
		all.Go(func() error { return f(i) })
	}
	return all.Wait()
}

func unlessLost(err error) error {
	if errors.Is(err, session.ErrLost) {
		return nil
	}
	return err
}

func (c *cell) lockPath(i int) string { return fmt.Sprintf("%s/%d", c.base, i) }

// batchedLocks makes the directories, because a create fails without its directory, and a batch with it.
func (c *cell) batchedLocks(ctx context.Context) ([]*zklock.Mutex, error) {
	locks := make([]*zklock.Mutex, batchLocks)
	for i := range locks {
		err := c.makeDir(ctx, c.lockPath(i))
		if err != nil {
			return nil, err
		}
		if locks[i], err = zklock.New(c.ours, c.lockPath(i)); err != nil {
			return nil, err
		}
	}
	return locks, nil
}

// makeDir makes the directory of a lock, out of the way of the faults.
func (c *cell) makeDir(ctx context.Context, dir string) error {
	s, err := c.site.holders.Session(ctx)
	if err != nil {
		return err
	}
	return (*core.Session)(s).MakeParents(ctx, dir)
}

// oneNode returns an error if a lease that is held has no node, or a second one.
func (c *cell) oneNode(ctx context.Context, i int, l *queue.Lease) error {
	nodes, err := c.site.contenders(ctx, c.lockPath(i))
	if err == nil && l.Err() == nil && (len(nodes) != 1 || nodes[0] != l.Path()) {
		err = fmt.Errorf("%s is held, and its directory has %v", l.Path(), nodes)
	}
	return err
}

// emptyAgain waits until no contender is left.
func (c *cell) emptyAgain(ctx context.Context) error {
	for {
		nodes, err := c.site.contenders(ctx, c.base)
		if err != nil || len(nodes) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("these are left: %v", nodes)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// freshTokens takes each lock as another client, and compares the tokens.
func (c *cell) freshTokens(ctx context.Context, before []int64) error {
	return forAll(func(i int) error {
		l, err := mutex(ctx, c.site.rivals, c.lockPath(i))
		if err != nil {
			return err
		}
		token, err := l.leases()[0].Token(ctx)
		if err == nil && token <= before[i] {
			err = fmt.Errorf("token %x after %x", token, before[i])
		}
		return errors.Join(err, l.Release(ctx))
	})
}
