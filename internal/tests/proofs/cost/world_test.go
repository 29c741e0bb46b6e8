package cost

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	// oneWay is how long every frame takes, each way.
	oneWay = time.Millisecond
	// roundTrip is how long a write takes, and a read. The server itself takes no time.
	roundTrip = 2 * oneWay
	// tick is ZooKeeper's default. The longest session timeout is twenty of it.
	tick = 2 * time.Second
	// longTimeout is the session timeout where locks are measured. A waiter looks again once in a
	// timeout, and with this one it does not do so meanwhile: sessions_test.go measures that.
	longTimeout = 20 * tick
	// pause is long enough for whatever is under way to end, and short beside a heartbeat.
	pause = 5 * roundTrip
)

// world is one server and its clients, in a bubble.
type world struct {
	t      *testing.T
	server *zktest.Server
	meter  *meter // of all clients but world.other
}

// bubble runs f in a world of its own, in virtual time.
func bubble(t *testing.T, f func(*world)) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t, zktest.TickTime(tick), zktest.ContainerCheck(24*time.Hour))
		server.Delay(oneWay)
		f(&world{t: t, server: server, meter: newMeter()})
	})
}

func (w *world) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := w.server.Dialer()(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return w.meter.tap(c), nil
}

const somewhere = "127.0.0.1:2181"

// dialer is how a manager reaches the server.
type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// manager connects a manager with a session.
func (w *world) manager(dial dialer, timeout time.Duration) *session.Manager {
	w.t.Helper()
	m, err := session.Connect(w.t.Context(), somewhere, session.WithDialer(dial), session.WithTimeout(timeout), session.WithTickTime(tick),
		session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = m.Close() })
	return m
}

// managers connects n managers whose traffic is counted.
func (w *world) managers(n int, timeout time.Duration) []*session.Manager {
	w.t.Helper()
	all := make([]*session.Manager, n)
	for i := range all {
		all[i] = w.manager(w.dial, timeout)
	}
	return all
}

// other connects a manager whose traffic is not counted.
func (w *world) other(timeout time.Duration) *session.Manager {
	w.t.Helper()
	return w.manager(w.server.Dialer(), timeout)
}

// conns connects n clients of go-zookeeper, each with a session, whose traffic is counted.
func (w *world) conns(n int, timeout time.Duration) []*zk.Conn {
	w.t.Helper()
	dial := func(network, addr string, _ time.Duration) (net.Conn, error) {
		return w.dial(context.Background(), network, addr)
	}
	all := make([]*zk.Conn, n)
	for i := range all {
		c, events, err := zk.Connect([]string{somewhere}, timeout, zk.WithDialer(dial), zk.WithLogger(nothing{}),
			zk.WithMaxConnBufferSize(256<<10)) // its own two are 1.5 MB each
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(c.Close)
		for e := range events {
			if e.State == zk.StateHasSession {
				break
			}
		}
		all[i] = c
	}
	return all
}

type nothing struct{}

func (nothing) Printf(string, ...any) {}

// watches returns how many watches the server has.
func (w *world) watches() int {
	w.t.Helper()
	metrics, err := w.server.Metrics()
	if err != nil {
		w.t.Fatal(err)
	}
	n, err := strconv.Atoi(metrics["zk_watch_count"])
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// trips returns a time in round trips.
func trips(d time.Duration) float64 { return float64(d) / float64(roundTrip) }
