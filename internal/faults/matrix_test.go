package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// TestMatrix tries each fault at each step of each lock: an acquisition behind another holder,
// with the wait, the hold and the release; and one that is cancelled, with what it cleans up.
//
// Of each it checks that what was reported is what the server has; that nobody else is let in
// while a holder says it holds; that no node is left, though the sessions stay open; and that
// a client which comes later gets the lock.
func TestMatrix(t *testing.T) {
	table := newTable(allFaults())
	t.Cleanup(func() { table.publish(t) })
	for _, sub := range subjects() {
		trace(t, table, sub, false)
		if !sub.noCancel {
			trace(t, table, sub, true)
		}
	}
}

// trace records one trace and adds all cells of it.
func trace(t *testing.T, table *table, sub subject, cancels bool) {
	name := sub.name
	if cancels {
		name += "-cancelled"
	}
	table.row(name)
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		all := recordSteps(t, sub, cancels)
		table.steps(name, len(all))
		for _, f := range allFaults() {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				for k, at := range all {
					here, ok := f.at(at)
					if !ok {
						continue
					}
					table.planned(name, f.name)
					t.Run(fmt.Sprintf("%d-%v", k+1, at), func(t *testing.T) {
						t.Parallel()
						try(t, table, name, sub, cancels, here, at, all)
					})
				}
			})
		}
	})
}

// recordSteps records a trace, in a session that is in no danger.
func recordSteps(t *testing.T, sub subject, cancels bool) []step {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := newCell(t, shared(t), sub, cancels, longTimeout)
	out, err := c.run(ctx, nil, step{})
	if err == nil && len(out.steps) == 0 {
		err = errors.New("there are no steps")
	}
	if err != nil {
		t.Fatalf("without any fault: %v\n%s", err, c.story())
	}
	return out.steps
}

// try runs one cell.
func try(t *testing.T, table *table, row string, sub subject, cancels bool, f fault, at step, all []step) {
	on := shared
	if f.pauses {
		on = alone
	}
	s := on(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := newCell(t, s, sub, cancels, timeout)
	out, err := c.run(ctx, &f, at)
	table.done(row, f.name, out, err)
	if out.fresh > time.Second {
		t.Logf("a fresh client was in %v after the end of the fault:\n%s", out.fresh, c.story())
	}
	if err != nil {
		t.Errorf("%v\n%s of %s, at %v of %v.\n%s\nTo run this alone:\n  ZKTEST_REQUIRE_REAL=1 go test -count=1 ./internal/faults -run '^%s$'",
			err, f.name, row, at, all, c.story(), strings.ReplaceAll(t.Name(), "/", "$/^"))
	}
}

// story is all that happened in a cell: what was sent, and what came of it.
func (c *cell) story() string {
	var b strings.Builder
	s := newSteps(c.base)
	for _, r := range c.proxy.Requests() {
		if r.Op == zktest.OpPing {
			continue
		}
		fmt.Fprintf(&b, "%8.3fs  connection %d, session %#x: %v %s", r.At.Sub(c.began).Seconds(), r.Conn, r.Session, r.Op, r.Path)
		if st, ok := s.next(r); ok {
			fmt.Fprintf(&b, " (%v)", st)
		}
		b.WriteByte('\n')
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return b.String() + c.log.String()
}
