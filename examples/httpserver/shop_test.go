package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/fence"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main, "-listen") }

// patient bounds waits for things that happen at once, on a machine that may be busy.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

var must = expect.NoError

// newStock is a database with ten apples.
func newStock(t *testing.T) stock {
	t.Helper()
	s, err := openStock(t.Context(), filepath.Join(t.TempDir(), "stock.db"))
	must(t, err)
	t.Cleanup(func() { s.Close() })
	must(t, s.fill(t.Context(), "apple", 10))
	return s
}

// open opens a shop in a session of its own, as in another process.
func open(t *testing.T, server *zktest.Server, s stock, opts ...session.Option) (*shop, string) {
	t.Helper()
	shop, err := newShop(testserver.Connect(t, server.ConnectString(), opts...), s)
	must(t, err)
	shop.wait = time.Minute // on a machine that may be busy
	srv := httptest.NewServer(shop.handler())
	t.Cleanup(srv.Close)
	return shop, srv.URL
}

// logged returns what the shop logs from here on.
func (s *shop) logged() *exampletest.Buffer {
	text := new(exampletest.Buffer)
	s.log = slog.New(slog.NewTextHandler(text, nil))
	return text
}

// wantLeft wants so many of ten apples.
func wantLeft(t *testing.T, s stock, want int) {
	t.Helper()
	n, err := s.left(t.Context(), "apple")
	must(t, err)
	if n != want {
		t.Errorf("%d left of 10, want %d", n, want)
	}
}

// refuses wants a purchase to be answered with 503, and the cause in the log.
func (s *shop) refuses(t *testing.T, url string, cause error) {
	t.Helper()
	log := s.logged()
	_, err := buy(patient(t), url, "apple")
	if !errors.Is(err, errTryAgain) || !strings.Contains(log.String(), cause.Error()) {
		t.Errorf("the answer is %v, and the log has\n%s", err, log)
	}
}

func TestSoldOut(t *testing.T) {
	ctx := patient(t)
	server, s := zktest.Start(t), newStock(t)
	_, a := open(t, server, s)
	_, b := open(t, server, s)
	var mu sync.Mutex
	var sold []receipt
	soldOut := 0
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			r, err := buy(ctx, []string{a, b}[i%2], "apple")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				sold = append(sold, r)
			case errors.Is(err, errSoldOut):
				soldOut++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(sold) != 10 || soldOut != 20 {
		t.Errorf("of 10 apples, %d sold, %d times sold out", len(sold), soldOut)
	}
	wantLeft(t, s, 0)
	must(t, oneByOne(sold))
}

// A lock that is lost in the middle of a request: 503, and nothing is written.
func TestLostLock(t *testing.T) {
	ctx := patient(t)
	server, s := zktest.Start(t), newStock(t)
	shop, url := open(t, server, s)
	shop.reserve = func(held context.Context, _ string) error {
		session, err := shop.m.Session(ctx)
		if err != nil {
			return err
		}
		if err := server.Expire(ctx, session.ID()); err != nil {
			return err
		}
		select {
		case <-held.Done():
			return nil // as a careless program does, which does not look why
		case <-ctx.Done():
			return errors.New("the request goes on without its lock")
		}
	}
	shop.refuses(t, url, session.ErrLost)
	wantLeft(t, s, 10)
	shop.reserve = func(context.Context, string) error { return nil }
	r, err := buy(ctx, url, "apple")
	must(t, err)
	if r.Left != 9 {
		t.Errorf("%d left of 10 after one deduction", r.Left)
	}
}

// A holder whose lock has expired, and that does not know of it, still writes if the next holder has not been here: the next
// one bases its write on that. From the moment the next holder has entered, the row refuses the former one's token.
func TestStaleHolder(t *testing.T) {
	ctx := patient(t)
	s := newStock(t)
	const former, next = 41, 42
	_, err := s.enter(ctx, "apple", former)
	must(t, err)
	_, err = s.take(ctx, "apple", former)
	must(t, err)
	_, err = s.enter(ctx, "apple", next)
	must(t, err)
	if _, err := s.take(ctx, "apple", former); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a write with token %d after %d has entered: %v", former, next, err)
	}
	if _, err := s.enter(ctx, "apple", former); !errors.Is(err, fence.ErrStale) {
		t.Errorf("token %d enters after %d: %v", former, next, err)
	}
	_, err = s.take(ctx, "apple", next)
	must(t, err)
	wantLeft(t, s, 8)
}

// A client that goes away gives up its place in the queue.
func TestClientGone(t *testing.T) {
	ctx := patient(t)
	server, s := zktest.Start(t), newStock(t)
	shop, url := open(t, server, s)
	lock, err := zklock.New(shop.m, "/stock/apple")
	must(t, err)
	lease, err := lock.Acquire(ctx)
	must(t, err)
	defer lease.Release(ctx) // also when the test fails: a request that waits would delay its end
	waitQueue := func(n int) {
		t.Helper()
		zktest.Eventually(t, testserver.Patience, "the queue", func() bool {
			all, err := lock.Contenders(ctx)
			must(t, err)
			return len(all) == n
		})
	}
	client, goAway := context.WithCancel(ctx)
	defer goAway()
	answer := make(chan error, 1)
	go func() {
		_, err := buy(client, url, "apple")
		answer <- err
	}()
	waitQueue(2)
	goAway()
	waitQueue(1)
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	must(t, lease.Release(ctx))
	wantLeft(t, s, 10)
}

// A request that has waited for long enough is answered 503, however long the holder takes, and leaves the queue.
func TestMaxWait(t *testing.T) {
	ctx := patient(t)
	server, s := zktest.Start(t), newStock(t)
	shop, url := open(t, server, s)
	lease, err := shop.locks.Acquire(ctx, "apple")
	must(t, err)
	defer lease.Release(ctx)
	shop.wait = time.Millisecond
	shop.refuses(t, url, queue.ErrMaxWait)
	zktest.Eventually(t, testserver.Patience, "the request to leave the queue", func() bool {
		all, err := shop.locks.Contenders(ctx, "apple")
		must(t, err)
		return len(all) == 1
	})
	must(t, lease.Release(ctx))
	shop.wait = time.Minute
	_, err = buy(ctx, url, "apple")
	must(t, err)
	wantLeft(t, s, 9)
}

// When too many requests hold or wait for locks, a further one is answered 503 at once, with
// nothing written.
func TestOverload(t *testing.T) {
	ctx := patient(t)
	server, s := zktest.Start(t), newStock(t)
	shop, url := open(t, server, s, session.WithNodeLimits(1, 1<<20))
	busy, goOn := make(chan struct{}), make(chan struct{})
	shop.reserve = func(context.Context, string) error {
		close(busy)
		<-goOn
		return nil
	}
	first := make(chan error, 1)
	go func() {
		_, err := buy(ctx, url, "apple")
		first <- err
	}()
	<-busy
	shop.refuses(t, url, session.ErrTooManyNodes)
	close(goOn)
	must(t, <-first)
	wantLeft(t, s, 9)
}

func TestSIGTERM(t *testing.T) {
	exampletest.Stops(t, "/stock/apple", 1, "-zk", testserver.Server(t).ConnectString())
}

func TestWrongServer(t *testing.T) {
	exampletest.WrongServer(t, func(addr string) []string { return []string{"-listen", "127.0.0.1:0", "-zk", addr} })
}
