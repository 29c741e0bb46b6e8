//go:build linux

package nemesis

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sort"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// These schedules measure which outages and slow commits a session survives. They are the only ones in virtual time, on the in-process servers of package zktest with ZooKeeper's default tick:
// real servers would need weeks for as many sessions. Processors and garbage collection take no time there. The sessions
// start at random times, from a fixed seed, so an outage strikes at every point of their heartbeats.
var outageSchedules = []schedule{
	{group: "outages", name: "connections reset", short: true, run: resetConnections},
	{group: "outages", name: "timeouts", run: timeouts},
}

const oneWay = 500 * time.Microsecond // what every frame takes, each way

// knowledge is how a manager knows the servers' tick.
type knowledge int

const (
	told    knowledge = iota // by session.WithTickTime
	learned                  // by asking a server, which is the default
	unknown                  // asking fails
)

func (k knowledge) String() string { return [...]string{"told", "learned", "unknown"}[k] }

// survivableWith is the longest outage in which no session of ten seconds may be lost.
func survivableWith(k knowledge) time.Duration {
	if k == unknown {
		return 3 * time.Second
	}
	return survivable
}

// world is an ensemble and its clients, in a bubble.
type world struct {
	*bubble.World
	down atomic.Bool // dials are refused
}

// within runs f in a world of its own, in virtual time.
func within(t *testing.T, f func(*world)) {
	t.Helper()
	bubble.Run(t, func(w *bubble.World) {
		w.Delay(oneWay)
		f(&world{World: w})
	}, zktest.Servers(voters), zktest.TickTime(labTick))
}

// dial reaches one of the servers, whatever the address.
func (w *world) dial(server int, k knowledge) func(ctx context.Context, network, addr string) (net.Conn, error) {
	open := w.DialerTo(server)
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

func (c *noVisit) Write(b []byte) (int, error) {
	if !c.began {
		c.began = true
		const timeout, session = 4 + 4 + 8, 4 + 4 + 8 + 4 // behind length, version and zxid
		if binary.BigEndian.Uint32(b[timeout:]) == 1 && binary.BigEndian.Uint64(b[session:]) == 0 {
			c.Close()
			return 0, errors.New("the tick is not to be learned")
		}
	}
	return c.Conn.Write(b)
}

// outage resets all connections, and has all dials refused for d.
func (w *world) outage(d time.Duration) {
	w.down.Store(true)
	w.Disconnect()
	time.Sleep(d)
	w.down.Store(false)
}

// hold opens n sessions that hold a lock each, spread evenly over the servers and at random over a timeout. It
// returns two timeouts after the first began, when all have long held their locks.
func (w *world) hold(seed uint64, n int, timeout time.Duration, k knowledge) []*queue.Lease {
	w.T.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	all := make([]*queue.Lease, n)
	var wg errgroup.Group
	for i := range all {
		opts := []session.Option{
			session.WithTimeout(timeout), session.WithLogger(slog.New(slog.DiscardHandler)), session.WithDialer(w.dial(i%voters, k)),
		}
		if k == told {
			opts = append(opts, session.WithTickTime(labTick))
		}
		start := time.Duration(random.Int64N(int64(timeout)))
		wg.Go(func() error {
			time.Sleep(start)
			m, err := session.Connect(w.Context(), w.Hosts(), opts...) // the dialer has the choice of the server
			if err != nil {
				return err
			}
			w.Cleanup(func() { _ = m.Close() })
			lock, err := zklock.New(m, fmt.Sprintf("/locks/%d", i))
			if err != nil {
				return err
			}
			all[i], err = lock.Acquire(w.Context())
			return err
		})
	}
	time.Sleep(2 * timeout)
	w.Must(wg.Wait())
	return all
}

// lost returns how many have lost their lock, and so their session.
func lost(all []*queue.Lease) (n int) {
	for _, l := range all {
		if l.Err() != nil {
			n++
		}
	}
	return n
}

// endure has n sessions that hold locks go through an outage, and returns how many are lost.
func endure(t *testing.T, seed uint64, n int, timeout time.Duration, k knowledge, outage time.Duration) (gone int) {
	t.Helper()
	const batch = 250 // in one bubble, at most
	for done := 0; done < n; done += batch {
		within(t, func(w *world) {
			all := w.hold(seed+uint64(done), min(batch, n-done), timeout, k)
			w.outage(outage)
			time.Sleep(timeout)
			gone += lost(all)
		})
	}
	return gone
}

// resetConnections has sessions of ten seconds go through outages: all connections are reset, and dials are refused for
// a while. None may be lost in outages of up to 4.5 s if the tick is known, and of up to 3 s if it is not. In full,
// longer outages are measured as well.
func resetConnections(t *trial) {
	sessions := longtest.Pick(20, 100)
	if t.full {
		sessions = 1000
	}
	for _, k := range []knowledge{told, learned, unknown} {
		var v verdict
		held := 0
		for i, d := range []float64{1, 2, 3, 4, 4.5, 5, 6, 7, 8, 9} {
			outage := time.Duration(d * float64(time.Second))
			promised := outage <= survivableWith(k)
			if !promised && !t.full {
				break
			}
			n := endure(t.T, uint64(1000*i), sessions, defaultTimeout, k, outage)
			t.faults, held = t.faults+1, held+sessions
			t.figure("%v: %d lost", outage, n)
			if promised && n > 0 {
				v.other = append(v.other, fmt.Sprintf("lost %d of %d sessions in an outage of %v, want none", n, sessions, outage))
			}
		}
		t.figure("of %d each", sessions)
		t.report("mutexes, tick "+k.String(), held, v, false)
		t.faults = 0
	}
}

// timeouts measures, for several timeouts, the longest outage and the slowest commits in which no session is lost. With
// -write it writes the table of docs/performance.md.
func timeouts(t *trial) {
	const sessions = 60
	var b strings.Builder
	b.WriteString("| timeout | longest outage | slowest commits | longest outage, tick unknown | slowest commits, tick unknown |\n| --- | ---: | ---: | ---: | ---: |\n")
	for _, timeout := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
		fmt.Fprintf(&b, "| %g s |", timeout.Seconds())
		for _, k := range []knowledge{learned, unknown} {
			outage := longestThat(timeout, func(d time.Duration) bool { return endure(t.T, 0, sessions, timeout, k, d) == 0 })
			commit := longestThat(timeout, func(d time.Duration) (survived bool) {
				within(t.T, func(w *world) {
					all := w.hold(0, sessions, timeout, k)
					testserver.Switch(w.Server).SetCommitDelay(d)
					time.Sleep(2 * time.Minute)
					survived = lost(all) == 0
				})
				return survived
			})
			fmt.Fprintf(&b, " %g s | %g s |", outage.Seconds(), commit.Seconds())
			if outage < survivableWith(k) {
				t.Errorf("sessions of %v survive %v with the tick %v", timeout, outage, k)
			}
		}
		b.WriteString("\n")
	}
	t.Logf("\n%s", b.String())
	if *writeFlag {
		t.must(report.Section(filepath.Join("..", "..", "..", "..", "docs", "performance.md"), "timeouts", b.String()))
	}
}

// longestThat returns the longest duration that is survived, in steps, below a limit; 0 if there is none.
func longestThat(limit time.Duration, survived func(time.Duration) bool) time.Duration {
	const step = 250 * time.Millisecond
	n := sort.Search(int(limit/step)-1, func(i int) bool { return !survived(time.Duration(i+1) * step) })
	return time.Duration(n) * step
}
