package size

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/leastleft"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// patience bounds a whole test.
const patience = 8 * time.Minute

var quiet = session.WithLogger(slog.New(slog.DiscardHandler))

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// server starts one real server with ZooKeeper's default tick, and a heap of 256 MB, which zktest gives each.
func server(t *testing.T, opts ...zktest.RealOption) *zktest.Ensemble {
	t.Helper()
	return zktest.StartReal(t, append(opts, zktest.TickTime(2*time.Second))...)
}

// user is a process with one session that holds a lock all the time.
type user struct {
	*session.Manager
	t         *testing.T
	s         *session.Session
	lost      atomic.Int64
	suspended atomic.Int64
	ended     <-chan struct{} // when its lock is lost
}

func newUser(t *testing.T, addr string, opts ...session.Option) *user {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := session.Connect(ctx, addr, append([]session.Option{quiet}, opts...)...)
	must(t, err)
	u := &user{Manager: m, t: t}
	t.Cleanup(func() { m.Close() })
	t.Cleanup(m.Subscribe(func(c session.Change) {
		switch c.To {
		case session.Lost:
			u.lost.Add(1)
			t.Log("lost: ", c.Err)
		case session.Suspended:
			u.suspended.Add(1)
			t.Log("suspended: ", c.Err)
		}
	}))
	u.s, err = m.Session(ctx)
	must(t, err)
	mx, err := zklock.New(m, fmt.Sprintf("/beside/%x", u.s.ID()))
	must(t, err)
	lease, err := mx.Acquire(ctx)
	must(t, err)
	u.ended = lease.Done()
	return u
}

// during calls f, and fails the test if the user has lost its session by then. It logs the least time that the
// session had left.
func (u *user) during(what string, f func(ctx context.Context)) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), patience)
	defer cancel()
	least := leastleft.Watch(u.s)
	began := time.Now()
	f(ctx)
	took := time.Since(began)
	u.t.Logf("%s: %v; at least %v of the session was left; %d suspensions", what, took.Round(time.Millisecond),
		least().Round(time.Millisecond), u.suspended.Load())
	select {
	case <-u.ended:
		u.t.Errorf("%s: another lock of the session is lost", what)
	default:
	}
	if n := u.lost.Load(); n > 0 || u.s.Err() != nil {
		u.t.Errorf("%s: %d sessions are lost; %v", what, n, u.s.Err())
	}
}

// each runs f n times at the same time, and fails the test if some of these fail.
func each(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var all sync.WaitGroup
	var failed atomic.Int64
	var first atomic.Pointer[error]
	for i := range n {
		all.Go(func() {
			if err := f(i); err != nil {
				failed.Add(1)
				first.CompareAndSwap(nil, &err)
			}
		})
	}
	all.Wait()
	if failed.Load() > 0 {
		t.Errorf("%d of %d failed, for example: %v", failed.Load(), n, *first.Load())
	}
}
