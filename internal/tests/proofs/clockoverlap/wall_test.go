//go:build linux

package clockoverlap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/fakeclocks"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/session"
)

// wallStep is how far wall clocks are stepped.
const wallStep = time.Hour

// The wall clocks of the servers are stepped while locks are held and the others wait, and around a cut.
func TestServersStepped(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	offset := filepath.Join(t.TempDir(), "offset")
	step := func(ahead time.Duration) error {
		next := offset + ".next" // servers must not read half of it
		if err := os.WriteFile(next, fmt.Appendf(nil, "%+d\n", ahead/time.Second), 0o600); err != nil {
			return err
		}
		return os.Rename(next, offset)
	}
	if err := step(0); err != nil {
		t.Fatal(err)
	}
	testStepped(t, step, map[string]string{
		"FAKETIME_TIMESTAMP_FILE":      offset,
		"FAKETIME_CACHE_DURATION":      "1", // seconds
		"FAKETIME_DONT_FAKE_MONOTONIC": "1", // System.nanoTime is right
		"FAKETIME_FORCE_MONOTONIC_FIX": "0", // and so is how long threads wait
	})
}

// The wall clock of the clients is stepped in the same way.
func TestClientsStepped(t *testing.T) {
	if own, ok := fakeclocks.Own(); ok {
		testStepped(t, own.SetWall, nil)
		return
	}
	longtest.Only(t)
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), fakeclocks.Build(t, "./internal/tests/proofs/clockoverlap", true),
		"-test.run=^"+t.Name()+"$", "-test.v", "-wrongclock", repeatFlag.String())
	cmd.Env = append(os.Environ(), fakeclocks.New(t).Env())
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// testStepped steps clocks before and around the cut of the first schedule.
func testStepped(t *testing.T, step func(ahead time.Duration) error, environ map[string]string) {
	run := func(ctx context.Context, e *ensemble, c *contest, bg *sync.WaitGroup, oneWay bool) (*trap, error) {
		for _, ahead := range []time.Duration{wallStep, -wallStep, 0} {
			if err := step(ahead); err != nil {
				return nil, err
			}
			if err := c.seeStep(ctx, ahead); err != nil {
				return nil, err
			}
			// Longer than the shorter sessions live.
			if err := until(ctx, time.Now().Add(c.holders[0].timeout)); err != nil {
				return nil, err
			}
			c.checkKept(t, ahead)
		}
		if err := e.align(ctx); err != nil { // the pings have drifted meanwhile
			return nil, err
		}
		tr, err := cutBeforeAnswer(ctx, e, c, bg, oneWay)
		if err == nil {
			err = until(ctx, time.Now().Add(rand.N(4*e.period())))
		}
		if err == nil {
			err = step([]time.Duration{wallStep, -wallStep}[rand.IntN(2)])
		}
		return tr, err
	}
	s := schedule{kinds: kinds(6, 10), styles: []style{quiet, writes, writes, busy}, oneWay: 0.5, run: run}
	s.test(t, startEnsemble(t, 1, environ), *repeatFlag).mustHold(t)
}

// seeStep waits until the wall clock of the leader or of this process shows that it is ahead. The leader
// notes what its clock shows in each node that is written.
func (c *contest) seeStep(ctx context.Context, ahead time.Duration) error {
	s, err := c.rivals.Session(ctx)
	if err != nil {
		return err
	}
	node, err := s.Enter(ctx, session.NewNode{Dir: "/", Name: fmt.Sprintf("clock%d", serial.Add(1)), Fixed: true})
	if err != nil {
		return err
	}
	for {
		stat, err := s.Set(ctx, node.Path, nil, -1)
		if err != nil {
			return err
		}
		if d := time.Until(time.UnixMilli(stat.Mtime)).Abs() - ahead.Abs(); d.Abs() < wallStep/2 {
			return nil
		}
		if err := until(ctx, time.Now().Add(50*time.Millisecond)); err != nil {
			return err
		}
	}
}

// checkKept checks that a step of a clock has cost no holder its lock.
func (c *contest) checkKept(t *testing.T, ahead time.Duration) {
	for _, h := range c.holders {
		if err := h.lease.Err(); err != nil {
			t.Errorf("a clock was stepped, and is ahead by %v: %v (%s) has lost its lock: %v", ahead, h.kind, h.style, err)
		}
	}
}
