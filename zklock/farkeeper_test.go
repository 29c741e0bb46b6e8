package zklock_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// trier is a lock that is tried.
type trier interface {
	TryLock(context.Context) (bool, error)
	Unlock() error
}

// keeper is a lock whose place is kept: a mutex, or one side of a read-write lock.
type keeper struct {
	lock   func(context.Context) error
	unlock func() error
}

// keepers are locks at lockPath that keep their place, and the try of another process that is in its way.
var keepers = map[string]func(t *testing.T, keeps, tries *session.Manager) (keeper, trier){
	"mutex": func(t *testing.T, keeps, tries *session.Manager) (keeper, trier) {
		mx := newMutex(t, keeps, lockPath, lazy)
		return keeper{mx.Lock, mx.Unlock}, newMutex(t, tries, lockPath)
	},
	"lazy try": func(t *testing.T, keeps, tries *session.Manager) (keeper, trier) {
		mx := newMutex(t, keeps, lockPath, lazy)
		return keeper{mx.Lock, mx.Unlock}, newMutex(t, tries, lockPath, zklock.WithLazyRelease(time.Millisecond))
	},
	"readers": func(t *testing.T, keeps, tries *session.Manager) (keeper, trier) {
		rw := lazyRW(t, keeps, lockPath)
		return keeper{rw.RLock, rw.RUnlock}, lazyRW(t, tries, lockPath)
	},
	"writer": func(t *testing.T, keeps, tries *session.Manager) (keeper, trier) {
		rw := lazyRW(t, keeps, lockPath)
		return keeper{rw.Lock, rw.Unlock}, lazyRW(t, tries, lockPath).Reader()
	},
}

// eachFarKeeper runs f for all keepers, at some distances from the server. The try is next to the server.
func eachFarKeeper(t *testing.T, f func(t *testing.T, k keeper, try trier)) {
	for name, locks := range keepers {
		for _, oneWay := range []time.Duration{0, 2, 5, 10, 50} {
			oneWay *= time.Millisecond
			t.Run(fmt.Sprint(name, "/", oneWay), func(t *testing.T) {
				inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
					t.Cleanup(func() { time.Sleep(time.Second) }) // what is on its way arrives after the managers are closed
					k, try := locks(t, connect(session.WithDialer(far(server.Dialer(), oneWay))), connect())
					f(t, k, try)
				})
			})
		}
	}
}

// A try gets a lock that nobody uses, however near the caller and however far the process that keeps its place.
func TestTryFarKeeper(t *testing.T) {
	eachFarKeeper(t, func(t *testing.T, k keeper, try trier) {
		for i := range 20 {
			for range 2 { // the second use shows that the place is worth keeping
				must(t, k.lock(t.Context()))
				must(t, k.unlock())
			}
			time.Sleep(time.Second) // nobody uses it
			ok, err := try.TryLock(t.Context())
			must(t, err)
			if !ok {
				t.Fatalf("try %d: busy, though nobody holds the lock", i)
			}
			must(t, try.Unlock())
			time.Sleep(time.Second)
		}
	})
}

// How long a try takes to say busy. Only for a place that may be kept it waits for more than the servers, and not if the
// lock is known to be in use: by the same session, or because another contender waits already.
func TestTryBusyTakes(t *testing.T) {
	const trip = 2 * time.Millisecond
	for _, c := range []struct {
		what       string
		keeps      bool // the holder has WithLazyRelease
		same       bool // the try is of the same session
		waits      bool // another contender waits
		atMost     time.Duration
		longerThan time.Duration
	}{
		{"ordinary holder", false, false, false, 2 * trip, 0},
		{"keeper", true, false, false, 250*time.Millisecond + 4*trip, 250 * time.Millisecond},
		{"keeper of the same session", true, true, false, 2 * trip, 0},
		{"keeper that another waits for", true, false, true, 2 * trip, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
				holding, trying := connect(), connect()
				if c.same {
					trying = holding
				}
				var opts []zklock.Option
				if c.keeps {
					opts = append(opts, lazy)
				}
				holder := newMutex(t, holding, lockPath, opts...)
				must(t, holder.Lock(t.Context()))
				if c.waits {
					ctx, cancel := context.WithCancel(t.Context())
					waiter := newMutex(t, connect(), lockPath, lazy)
					waits := background(func() error { return waiter.Lock(ctx) })
					defer func() { <-waits }()
					defer cancel()
				}
				time.Sleep(time.Second)
				server.Delay(trip / 2)
				began := time.Now()
				ok, err := newMutex(t, trying, lockPath).TryLock(t.Context())
				must(t, err)
				took := time.Since(began)
				t.Log(took)
				if ok || took > c.atMost || took < c.longerThan {
					t.Errorf("%v after %v, want false after at most %v", ok, took, c.atMost)
				}
				server.Delay(0)
			})
		})
	}
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// far returns a dialer of connections that take so long one way.
func far(dial dialer, oneWay time.Duration) dialer {
	if oneWay == 0 {
		return dial
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		server, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		client, way := net.Pipe()
		go carry(server, way, oneWay)
		go carry(way, server, oneWay)
		return client, nil
	}
}

// carry copies from one connection to another, so much later, until one of them ends.
func carry(to, from net.Conn, later time.Duration) {
	type piece struct {
		due  time.Time
		text []byte
	}
	way := make(chan piece, 1<<10)
	go func() {
		defer func() { _ = from.Close() }()
		defer func() { _ = to.Close() }()
		for p := range way {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.text); err != nil {
				break
			}
		}
		for range way { // until the other goroutine has seen the end
		}
	}()
	defer close(way)
	for {
		b := make([]byte, 4<<10)
		n, err := from.Read(b)
		if n > 0 {
			way <- piece{time.Now().Add(later), b[:n]}
		}
		if err != nil {
			return
		}
	}
}
