package cost

import (
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// upkeep is the traffic of an idle session over some time.
type upkeep struct {
	what    string
	minutes float64
	traffic
}

// watched is how long. It is a multiple of the timeouts of all sessions.
const watched = 20 * time.Minute

// perMinute returns the number of all requests, or of some kinds, in a minute.
func (u upkeep) perMinute(ops ...zktest.Op) float64 {
	t := u.except()
	if len(ops) > 0 {
		t = u.of(ops...)
	}
	return float64(t.requests) / u.minutes
}

// bytes returns the bytes of a minute, both ways.
func (u upkeep) bytes() float64 { return float64(u.except().bytes()) / u.minutes }

// writes returns the heartbeats that a quorum has to agree to.
func (u upkeep) writes() float64 { return u.perMinute(zktest.OpMulti) }

// idle counts the traffic while nothing happens.
func (w *world) idle() upkeep {
	time.Sleep(time.Minute) // what only the beginning costs is not counted
	w.meter.reset()
	time.Sleep(watched)
	return upkeep{minutes: watched.Minutes(), traffic: w.meter.read()}
}

// plain is a session of go-zookeeper without any of ours, that does nothing.
func (w *world) plain(timeout time.Duration) upkeep {
	w.conns(1, timeout)
	return w.idle()
}

// holding is a session that holds n locks.
func (w *world) holding(n int, timeout time.Duration) upkeep {
	w.t.Helper()
	w.takeAll(w.managers(1, timeout)[0], n)
	return w.idle()
}

// waiting is a session that waits for n locks.
func (w *world) waiting(n int, timeout time.Duration) upkeep {
	w.t.Helper()
	releaseAll := w.takeAll(w.other(timeout), n)
	m := w.managers(1, timeout)[0]
	var g errgroup.Group
	for i := range n {
		take := w.lock(m, i)
		g.Go(func() error {
			giveBack, err := take(w.t.Context())
			if err != nil {
				return err
			}
			return giveBack()
		})
	}
	u := w.idle()
	releaseAll()
	if err := g.Wait(); err != nil {
		w.t.Fatal(err)
	}
	return u
}

// lock takes the i-th of many locks.
func (w *world) lock(m *session.Manager, i int) taker {
	w.t.Helper()
	l, err := zklock.New(m, fmt.Sprintf("/locks/%d", i))
	if err != nil {
		w.t.Fatal(err)
	}
	return take(l)
}

// takeAll takes n locks, and returns how to release them.
func (w *world) takeAll(m *session.Manager, n int) (releaseAll func()) {
	w.t.Helper()
	var gives []func() error
	for i := range n {
		giveBack, err := w.lock(m, i)(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		gives = append(gives, giveBack)
	}
	return func() {
		for _, giveBack := range gives {
			if err := giveBack(); err != nil {
				w.t.Error(err)
			}
		}
	}
}
