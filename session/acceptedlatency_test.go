package session_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Options that are accepted keep a session with a node alive on healthy servers behind a network with a constant round
// trip, up to a fiftieth of the timeout. Otherwise the constructor refuses them, or the manager never has a session.
//
// Broken rule: an accepted margin must work with latency, or be refused with the reason.
func TestAcceptedOptionsBearLatency(t *testing.T) {
	const ms = time.Millisecond
	const idles = 12 // what a first node proves depends on when it comes
	for _, c := range []setting{
		{10 * time.Second, 2 * time.Second, 4700 * ms, true},
		{10 * time.Second, 5 * time.Second, 4000 * ms, false},
		{4 * time.Second, 200 * ms, 1800 * ms, true},
		{1 * time.Second, 100 * ms, 370 * ms, true},
		{10 * time.Second, 2 * time.Second, 4000 * ms, true}, // this and the next three have the longest margins that are accepted
		{4 * time.Second, 200 * ms, 1540 * ms, true},
		{1 * time.Second, 100 * ms, 310 * ms, true},
		{10 * time.Second, 5 * time.Second, 3950 * ms, true},
		{10 * time.Second, 5 * time.Second, 4150 * ms, true},
		{600 * ms, 300 * ms, 0, false},
		{20 * time.Second, 2 * time.Second, 9500 * ms, true},
	} {
		for _, rtt := range []time.Duration{0, 20 * ms, 80 * ms, 200 * ms} {
			if rtt > c.timeout/50 {
				continue
			}
			lost, runs, first := 0, 0, ""
			for i := range idles {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.TickTime(c.tick))
					srv.Delay(rtt / 2)
					m, err := session.Open("h:1", append(c.options(), quiet, session.WithDialer(srv.Dialer()))...)
					if err != nil {
						return
					}
					defer m.Close()
					s, err := m.Session(t.Context())
					if err != nil {
						return
					}
					runs++
					idle := 3*c.timeout + time.Duration(i)*c.timeout/(idles-1)
					time.Sleep(idle)
					must(t, s.Err())
					began := time.Now()
					_, err = s.Enter(t.Context(), session.NewNode{Dir: "/d", Name: "own", Fixed: true})
					for ; err == nil && time.Since(began) < 5*c.timeout; time.Sleep(c.timeout / 100) {
						err = s.Err()
					}
					if err != nil {
						lost++
						first = fmt.Sprintf("idle %v, after %v: %v", idle, time.Since(began), err)
					}
				})
			}
			if (c.margin == 4000*ms || c.margin == 3950*ms) && runs == 0 {
				t.Errorf("%v: not accepted", c)
			}
			if lost > 0 {
				t.Errorf("%v, round trip %v: %d of %d sessions were lost: %s", c, rtt, lost, runs, first)
			}
		}
	}
}
