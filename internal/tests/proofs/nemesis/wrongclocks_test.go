//go:build linux

package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/fakeclocks"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// atRate has the servers' clocks run faster or slower than the client's.
func atRate(rate float64) func(*trial) {
	return func(t *trial) {
		cut{
			seconds: []int{4, 10, 20}, oneWay: 0.5, rate: rate, mayFail: rate > holdsUpTo,
			environ: map[string]string{"FAKETIME": fmt.Sprintf("+0 x%v", rate)},
			run: func(ctx context.Context, l *clockLab, bg *sync.WaitGroup, oneWay bool) (*trap, error) {
				if rand.IntN(5) == 0 {
					return leaderStoodStill(ctx, l, bg, oneWay)
				}
				return cutBeforeAnswer(ctx, l, bg, oneWay)
			},
		}.repeat(t, time.Second)
	}
}

// The wall clocks of the servers are stepped while locks are held and the others wait, and around a cut.
func serversStepped(t *trial) {
	offset := filepath.Join(t.TempDir(), "offset")
	step := func(ahead time.Duration) error {
		next := offset + ".next" // servers must not read half of it
		return errors.Join(os.WriteFile(next, fmt.Appendf(nil, "%+d\n", ahead/time.Second), 0o600), os.Rename(next, offset))
	}
	t.must(step(0))
	stepped(t, step, map[string]string{
		"FAKETIME_TIMESTAMP_FILE":      offset,
		"FAKETIME_CACHE_DURATION":      "1", // seconds
		"FAKETIME_DONT_FAKE_MONOTONIC": "1", // System.nanoTime is right
		"FAKETIME_FORCE_MONOTONIC_FIX": "0", // and so is how long threads wait
	})
}

// The wall clock of the clients is stepped in the same way.
func clientsStepped(t *trial) {
	if own, ok := fakeclocks.Own(); ok {
		stepped(t, own.SetWall, nil)
		return
	}
	cmd := exec.CommandContext(t.Context(), fakeclocks.Build(t.T, "./internal/tests/proofs/nemesis", true),
		"-test.run=^TestNemesis$", "-test.v", "-schedule", t.schedule.String(), "-for", t.length(0, time.Second).String())
	cmd.Env = append(os.Environ(), fakeclocks.New(t.T).Env())
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	t.must(err)
	t.figure("in a process of its own")
	t.report("a mutex", 0, verdict{}, false)
}

// stepped steps clocks before and around the cut of the first schedule.
func stepped(t *trial, step func(ahead time.Duration) error, environ map[string]string) {
	run := func(ctx context.Context, l *clockLab, bg *sync.WaitGroup, oneWay bool) (*trap, error) {
		for _, ahead := range []time.Duration{wallStep, -wallStep, 0} {
			if err := step(ahead); err != nil {
				return nil, err
			}
			if err := l.seeStep(ctx, ahead); err != nil {
				return nil, err
			}
			// Longer than the shorter sessions live.
			if err := until(ctx, time.Now().Add(l.contest[0].timeout)); err != nil {
				return nil, err
			}
			for _, c := range l.contest {
				if err := c.held.Err(); err != nil {
					t.Errorf("a clock was stepped, and is ahead by %v: %v (%s) has lost its lock: %v", ahead, c.timeout, c.style, err)
				}
			}
		}
		if err := l.align(ctx); err != nil { // the pings have drifted meanwhile
			return nil, err
		}
		tr, err := cutBeforeAnswer(ctx, l, bg, oneWay)
		if err == nil {
			err = until(ctx, time.Now().Add(rand.N(4*l.period())))
		}
		if err == nil {
			err = step([]time.Duration{wallStep, -wallStep}[rand.IntN(2)])
		}
		return tr, err
	}
	cut{seconds: []int{6, 10}, oneWay: 0.5, environ: environ, run: run}.repeat(t, time.Second)
}

// serverTime asks for the wall clock of the leader, which it notes in each node that is written.
func (l *clockLab) serverTime(ctx context.Context) (func() (time.Time, error), error) {
	s, err := l.rivals.Session(ctx)
	if err != nil {
		return nil, err
	}
	node, err := s.Enter(ctx, session.NewNode{Dir: "/", Name: fmt.Sprintf("clock%d", l.serial.Add(1)), Fixed: true})
	return func() (time.Time, error) {
		stat, err := s.Set(ctx, node.Path, nil, -1)
		if err != nil {
			return time.Time{}, err
		}
		return time.UnixMilli(stat.Mtime), nil
	}, err
}

// seeStep waits until the wall clock of the leader or of this process shows that it is ahead.
func (l *clockLab) seeStep(ctx context.Context, ahead time.Duration) error {
	ask, err := l.serverTime(ctx)
	for err == nil {
		var at time.Time
		if at, err = ask(); err == nil && (time.Until(at).Abs()-ahead.Abs()).Abs() < wallStep/2 {
			return nil
		}
		err = errors.Join(err, until(ctx, time.Now().Add(50*time.Millisecond)))
	}
	return err
}

// serverClock is what is known about the clock of System.nanoTime on the server that leads.
type serverClock struct {
	rate float64 // by the clock of this process

	// If the rate is not 1, the clock showed nano at the time at.
	at   time.Time
	nano time.Duration
}

// real returns how long something takes that takes d by the server's clock.
func (c *serverClock) real(d time.Duration) time.Duration {
	return time.Duration(float64(d) / c.rate)
}

// nanoTime returns what the clock shows at a time.
func (c *serverClock) nanoTime(at time.Time) time.Duration {
	if c.rate != 1 {
		return c.nano + time.Duration(float64(at.Sub(c.at))*c.rate)
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano()) - time.Since(at)
}

// read finds out what the clock shows. Under libfaketime, a clock with a rate shows the same as the
// server's wall clock.
func (c *serverClock) read(ctx context.Context, l *clockLab) error {
	if c.rate == 1 {
		return nil
	}
	ask, err := l.serverTime(ctx)
	shortest := time.Hour
	for i := 0; i < 10 && err == nil; i++ {
		var shown time.Time
		before := time.Now()
		shown, err = ask()
		if took := time.Since(before); err == nil && took < shortest {
			shortest = took
			c.at, c.nano = before.Add(took/2), time.Duration(shown.UnixNano())
		}
	}
	return err
}

// startFaked starts servers under libfaketime, or by themselves if environ is empty.
func startFaked(t *trial, environ map[string]string, opts ...zktest.RealOption) *zktest.Ensemble {
	t.Helper()
	if len(environ) == 0 {
		return zktest.StartReal(t, opts...)
	}
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1") // Debian's
	if len(found) == 0 {
		testserver.Missing(t, errors.New("no libfaketime on this machine: make deps"))
	}
	opts = append(opts, zktest.Environ("LD_PRELOAD", found[0]))
	for key, value := range environ {
		opts = append(opts, zktest.Environ(key, value))
	}
	e := zktest.StartReal(t, opts...)
	// The library leaves files in /dev/shm if the process is killed.
	t.Cleanup(func() {
		var all sync.WaitGroup
		for i := range e.Len() {
			all.Go(func() {
				if err := e.Stop(i); err != nil {
					t.Log(err)
				}
			})
		}
		all.Wait()
	})
	return e
}
