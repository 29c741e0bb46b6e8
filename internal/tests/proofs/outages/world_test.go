package outages

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	servers = 3
	tick    = 2 * time.Second        // ZooKeeper's default
	oneWay  = 500 * time.Microsecond // what every frame takes, each way
)

// knowledge is how a manager knows the servers' tick.
type knowledge int

const (
	told    knowledge = iota // by session.WithTickTime
	learned                  // by asking a server, which is the default
	unknown                  // asking fails
)

func (k knowledge) String() string { return [...]string{"told", "learned", "unknown"}[k] }

// world is an ensemble and its clients, in a bubble.
type world struct {
	t      *testing.T
	server *zktest.Server
	random *rand.Rand
	down   atomic.Bool // dials are refused
}

// bubble runs f in a world of its own, in virtual time.
func bubble(t *testing.T, seed uint64, f func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t, zktest.Servers(servers), zktest.TickTime(tick))
		server.Delay(oneWay)
		f(&world{t: t, server: server, random: rand.New(rand.NewPCG(seed, 0))})
	})
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// dial reaches one of the servers, whatever the address.
func (w *world) dial(server int, k knowledge) dialer {
	open := w.server.DialerTo(server)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if w.down.Load() {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		c, err := open(ctx, network, addr)
		if err == nil && k == unknown {
			c = &noVisit{Conn: c}
		}
		return c, err
	}
}

// noVisit is a connection that breaks when its client asks for the shortest session timeout,
// which is how a manager learns the tick.
type noVisit struct {
	net.Conn
	began bool
}

var errVisit = errors.New("the tick is not to be learned")

func (c *noVisit) Write(b []byte) (int, error) {
	if !c.began {
		c.began = true
		const timeout, session = 4 + 4 + 8, 4 + 4 + 8 + 4 // behind length, version and zxid
		if binary.BigEndian.Uint32(b[timeout:]) == 1 && binary.BigEndian.Uint64(b[session:]) == 0 {
			c.Close()
			return 0, errVisit
		}
	}
	return c.Conn.Write(b)
}

// outage resets all connections, and has all dials refused for d.
func (w *world) outage(d time.Duration) {
	w.down.Store(true)
	w.server.Disconnect()
	time.Sleep(d)
	w.down.Store(false)
}

// holder is a session, of a manager of its own, that holds a lock of its own.
type holder struct {
	manager *session.Manager
	session *session.Session
	lease   *queue.Lease
}

func (h *holder) lost() bool { return h.session.Err() != nil || h.lease.Err() != nil }

func options(timeout time.Duration, k knowledge) []session.Option {
	opts := []session.Option{session.WithTimeout(timeout), session.WithLogger(slog.New(slog.DiscardHandler))}
	if k == told {
		opts = append(opts, session.WithTickTime(tick))
	}
	return opts
}

// hosts is what managers connect to. The dialer has the choice.
const hosts = "zk0:2181,zk1:2181,zk2:2181"

func (w *world) connect(server int, timeout time.Duration, k knowledge) (*session.Manager, *session.Session, error) {
	m, err := session.Connect(w.t.Context(), hosts, append(options(timeout, k), session.WithDialer(w.dial(server, k)))...)
	if err != nil {
		return nil, nil, err
	}
	w.t.Cleanup(func() { _ = m.Close() })
	s, err := m.Session(w.t.Context())
	return m, s, err
}

// hold opens n sessions, spread evenly over the servers and at random over a timeout. It
// returns two timeouts after the first began, when all have long held their locks.
func (w *world) hold(n int, timeout time.Duration, k knowledge) []*holder {
	w.t.Helper()
	all := make([]*holder, n)
	var wg sync.WaitGroup
	for i := range all {
		start := time.Duration(w.random.Int64N(int64(timeout)))
		wg.Go(func() {
			time.Sleep(start)
			h, err := w.holder(i, timeout, k)
			if err != nil {
				w.t.Error(err)
			}
			all[i] = h
		})
	}
	time.Sleep(2 * timeout)
	wg.Wait()
	if w.t.Failed() {
		w.t.FailNow()
	}
	return all
}

func (w *world) holder(i int, timeout time.Duration, k knowledge) (*holder, error) {
	m, s, err := w.connect(i%servers, timeout, k)
	if err != nil {
		return nil, err
	}
	lock, err := zklock.New(m, fmt.Sprintf("/locks/%d", i))
	if err != nil {
		return nil, err
	}
	lease, err := lock.Acquire(w.t.Context())
	return &holder{m, s, lease}, err
}

// lost returns how many have lost their session.
func lost(all []*holder) (n int) {
	for _, h := range all {
		if h.lost() {
			n++
		}
	}
	return n
}

// least returns the shortest time for which any of the sessions is certain.
func least(all []*holder) time.Duration {
	d := all[0].session.Remaining()
	for _, h := range all {
		d = min(d, h.session.Remaining())
	}
	return d
}
