package outages

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/zktest"
)

// rate is what one session sends in a time.
type rate struct{ ping, sync, write float64 }

func (r rate) all() float64 { return r.ping + r.sync + r.write }

func (r rate) String() string {
	return fmt.Sprintf("%.1f requests: %.1f pings, %.1f syncs, %.1f writes", r.all(), r.ping, r.sync, r.write)
}

// rateOf counts what a session sends within so many periods, for each period. Whatever is
// neither ping nor sync counts as a write.
func (w *world) rateOf(id int64, periods int, period time.Duration) (r rate) {
	w.server.ResetRequests()
	time.Sleep(time.Duration(periods) * period)
	for _, q := range w.server.Requests() {
		if q.Session != id {
			continue
		}
		switch q.Op {
		case zktest.OpPing:
			r.ping++
		case zktest.OpSync:
			r.sync++
		default:
			r.write++
		}
	}
	n := float64(periods)
	return rate{r.ping / n, r.sync / n, r.write / n}
}

// plain opens a session of go-zookeeper without any of ours.
func (w *world) plain(timeout time.Duration) *zk.Conn {
	w.t.Helper()
	open := w.dial(0, learned)
	dial := func(network, addr string, _ time.Duration) (net.Conn, error) {
		return open(context.Background(), network, addr)
	}
	c, events, err := zk.Connect([]string{"127.0.0.1:2181"}, timeout, zk.WithDialer(dial),
		zk.WithLogger(nothing{}), zk.WithMaxConnBufferSize(256<<10))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	return c
}

type nothing struct{}

func (nothing) Printf(string, ...any) {}

// TestRequests counts what a session of ten seconds sends in a minute. An idle one sends at
// most twice as much as zk.Conn does.
func TestRequests(t *testing.T) {
	const minutes = 10
	bubble(t, 0, func(w *world) {
		// Each client has a server of its own, so that no request is for the other client.
		c := w.plain(defaultTimeout)
		_, s, err := w.connect(1, defaultTimeout, learned)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		plain := w.rateOf(c.SessionID(), minutes, time.Minute)
		idle := w.rateOf(s.ID(), minutes, time.Minute)
		t.Logf("zk.Conn, idle, a minute: %v", plain)
		t.Logf("ours, idle, a minute:    %v", idle)
		if plain.all() == 0 || idle.all() > 2*plain.all() || idle.write > 0 {
			t.Errorf("idle: %v a minute, of zk.Conn's %v: want at most twice as many, and no writes", idle, plain)
		}
	})
	bubble(t, 0, func(w *world) {
		h := w.hold(1, defaultTimeout, learned)[0]
		time.Sleep(time.Minute)
		holding := w.rateOf(h.session.ID(), minutes, time.Minute)
		t.Logf("ours, holding, a minute: %v", holding)
		if rounds := float64(rounds(t)) * float64(time.Minute/defaultTimeout); holding.write > rounds+1 || holding.sync > rounds+1 {
			t.Errorf("holding: %v a minute, want at most %v syncs and as many writes", holding, rounds)
		}
	})
}
