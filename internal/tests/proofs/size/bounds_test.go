package size

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

func takeWith(ctx context.Context, m *session.Manager, path string, data []byte) error {
	q, err := queue.New(m, path)
	if err != nil {
		return err
	}
	l, err := q.Acquire(ctx, queue.Request{Kind: queue.Mutex(), Data: data})
	if err != nil {
		return err
	}
	return l.Release(ctx)
}

func isTooLong(err error) bool { return errors.Is(err, session.ErrTooLong) }

// counter is a way to a server that counts the creates that have no answer.
type counter struct {
	addr string
	most atomic.Int64 // at a time, on one connection
}

func newCounter(t *testing.T, target string) *counter {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	c := &counter{addr: l.Addr().String()}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp4", target)
			if err != nil {
				client.Close()
				continue
			}
			var mu sync.Mutex
			flying := make(map[int32]bool) // by number
			both := func() { client.Close(); server.Close() }
			all.Go(func() {
				defer both()
				frames(server, client, func(xid, op int32) {
					mu.Lock()
					defer mu.Unlock()
					if op == codec.OpCreate {
						flying[xid] = true
						c.most.Store(max(c.most.Load(), int64(len(flying))))
					}
				})
			})
			all.Go(func() {
				defer both()
				frames(client, server, func(xid, _ int32) {
					mu.Lock()
					defer mu.Unlock()
					delete(flying, xid)
				})
			})
		}
	})
	return c
}

// frames passes on frames, and calls f with the first two words of each but the first.
func frames(to io.Writer, from io.Reader, f func(a, b int32)) {
	for n := 0; ; n++ {
		frame, err := codec.ReadFrame(from, codec.MaxFrame)
		if err != nil {
			return
		}
		if n > 0 {
			d := codec.Decode(frame)
			f(d.Int32(), d.Int32())
		}
		if _, err := to.Write(frame); err != nil {
			return
		}
	}
}

// mostInFlight is the window, in calls.
const mostInFlight = 128

// However many goroutines create nodes, at most the window is in flight.
func TestCallsInFlight(t *testing.T) {
	c := newCounter(t, zktest.Start(t).Addr())
	u := newUser(t, c.addr)
	u.during("6000 creates of 3000 goroutines", func(ctx context.Context) {
		each(t, 3000, func(i int) error {
			for j := range 2 {
				if _, err := u.s.Create(ctx, fmt.Sprintf("/n-%d-%d", i, j), nil, session.Persistent); err != nil {
					return err
				}
			}
			return nil
		})
	})
	t.Logf("at most %d creates were in flight", c.most.Load())
	if n := c.most.Load(); n > mostInFlight {
		t.Errorf("%d creates were in flight, want at most %d", n, mostInFlight)
	}
}

// A quiet client writes now and then, while another floods the server with creates. Its rounds beside us and beside zk.Conn are
// logged, and the requests that the server had at most.
func TestQuietNeighbour(t *testing.T) {
	longtest.Only(t)
	e := server(t, zktest.Environ("JAVA_TOOL_OPTIONS", "-Dzookeeper.globalOutstandingLimit=50"))
	admin := rival(t, e.Addr(0))
	for _, path := range []string{"/flood", "/quiet"} {
		_, err := admin.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
	}
	const each = 12 * time.Second
	beside := func(what string, round int, create func(path string) error) int64 {
		quiet := rival(t, e.Addr(0))
		_, _, err := quiet.Get("/quiet")
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), each)
		defer cancel()
		var all sync.WaitGroup
		var rounds, made atomic.Int64
		all.Go(func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				var two sync.WaitGroup
				for range 2 {
					two.Go(func() { _, _ = quiet.Set("/quiet", nil, -1) })
				}
				two.Wait()
				rounds.Add(1)
				<-tick.C
			}
		})
		for g := range 3000 {
			all.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					if create(fmt.Sprintf("/flood/%s-%d-%d-%d", what, round, g, i)) == nil {
						made.Add(1)
					}
				}
			})
		}
		all.Wait()
		t.Logf("beside %s: %d rounds of the quiet client, %d creates", what, rounds.Load(), made.Load())
		return rounds.Load()
	}
	u := newUser(t, e.ConnectString(), session.WithTimeout(20*time.Second))
	var ours, theirs int64
	u.during("flood", func(ctx context.Context) {
		for round := range 2 {
			c := rival(t, e.Addr(0))
			theirs += beside("zk.Conn", round, func(path string) error {
				_, err := c.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
				return err
			})
			ours += beside("us", round, func(path string) error {
				_, err := u.s.Create(ctx, path, nil, session.Persistent)
				return err
			})
		}
	})
	t.Logf("rounds beside us to those beside zk.Conn: %.2f", float64(ours)/float64(theirs))
}

// Another client reads one small node again and again. Its median time is logged, alone and beside a burst of a thousand
// locks of one session.
func TestReadsBesideLocks(t *testing.T) {
	longtest.Only(t)
	e := server(t)
	reader := rival(t, e.Addr(0))
	_, err := reader.Create("/read", []byte("small"), 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	u := newUser(t, e.ConnectString())
	median := func(ctx context.Context) time.Duration {
		var all []time.Duration
		for len(all) == 0 || ctx.Err() == nil {
			began := time.Now()
			_, _, err := reader.Get("/read")
			must(t, err)
			all = append(all, time.Since(began))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		alone := median(ctx)
		cancel()
		ctx, cancel = context.WithCancel(t.Context())
		u.during("1000 locks at once, ten times each", func(inside context.Context) {
			var beside time.Duration
			var reads sync.WaitGroup
			reads.Go(func() { beside = median(ctx) })
			each(t, 1000, func(i int) error {
				for range 10 {
					if err := take(inside, u.Manager, fmt.Sprint("/burst/", i)); err != nil {
						return err
					}
				}
				return nil
			})
			cancel()
			reads.Wait()
			t.Logf("a read takes %v alone and %v beside the locks: %.2f times as long", alone, beside, float64(beside)/float64(alone))
		})
	}
}
