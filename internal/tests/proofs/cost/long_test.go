package cost

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A holder and a waiter live for long: nothing happens for a week, or the servers are away for days. Nothing of them does
// more as time passes, or else virtual time would not get so far. Afterwards the lock goes on.
func TestLongTimes(t *testing.T) {
	longtest.Only(t)
	days := func(n int) time.Duration { return longtest.Pick(90*time.Minute, time.Duration(n)*24*time.Hour) }
	for what, c := range map[string]struct {
		long     time.Duration
		from, to func(*zktest.Server)
	}{
		"nothing happens": {days(7), func(*zktest.Server) {}, func(*zktest.Server) {}},
		"refused":         {days(3), func(s *zktest.Server) { s.Refuse(true); s.Disconnect() }, func(s *zktest.Server) { s.Refuse(false) }},
		"no answer":       {days(3), func(s *zktest.Server) { s.Blackhole(zktest.ToServer) }, (*zktest.Server).Heal},
	} {
		t.Run(what, func(t *testing.T) {
			in(t, func(w *world) {
				holder, waiter := w.manager(10*time.Second), w.manager(10*time.Second)
				held, err := zklock.New(holder, lockPath)
				w.Must(err)
				wanted, err := zklock.New(waiter, lockPath)
				w.Must(err)
				lease, err := held.Acquire(w.T.Context())
				w.Must(err)
				got := make(chan error, 1)
				go func() { got <- wanted.Lock(w.T.Context()) }()
				time.Sleep(time.Minute)
				c.from(w.Server)
				time.Sleep(c.long)
				c.to(w.Server)
				if lost := lease.Err() != nil; lost != (what != "nothing happens") {
					w.Errorf("the lease: %v", lease.Err())
				}
				_ = lease.Release(w.T.Context())
				w.Must(<-got)
				w.Must(wanted.Unlock())
			})
		})
	}
}
