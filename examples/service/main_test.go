package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main, "-listen") }

var must = expect.NoError

// begin opens a replica, which end shuts down. change, which may be nil, changes it before it serves.
func begin(t *testing.T, c config, change func(*service)) (s *service, end func() error) {
	t.Helper()
	c.listen, c.operators = "127.0.0.1:0", "127.0.0.1:0"
	s, err := open(t.Context(), c)
	must(t, err)
	if change != nil {
		change(s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving errgroup.Group
	serving.Go(func() error { return s.run(ctx) })
	end = func() error { cancel(); return serving.Wait() }
	t.Cleanup(func() { _ = end() })
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return s, end
}

// page returns the status of a page for operators.
func page(t *testing.T, s *service, name string) int {
	t.Helper()
	resp, err := http.Get(s.operators + name)
	must(t, err)
	must(t, resp.Body.Close())
	return resp.StatusCode
}

func TestDemo(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	var out bytes.Buffer
	must(t, run(t.Context(), &out, config{timeout: 10 * time.Second, shipEvery: 10 * time.Millisecond, reportEvery: time.Minute}))
	if want := fmt.Sprintf("%d shipped", customers*orders); !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, &out)
	}
}

func TestSIGTERM(t *testing.T) {
	exampletest.Stops(t, "/service/shipping", 0, "-zk", testserver.Server(t).ConnectString(), "-listen", "127.0.0.1:0")
}

// At a shutdown the replica first says that it is not ready, and finishes the request under way while it leads. Then it
// gives up all locks, and another replica has them at once, although the session timeout is a minute.
func TestShutdown(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second) // less than the session timeout
	defer cancel()
	c := config{
		zk: zktest.Start(t, zktest.MaxSessionTimeout(time.Minute)).ConnectString(), db: filepath.Join(t.TempDir(), "orders.db"),
		timeout: time.Minute, shipEvery: time.Millisecond, reportEvery: time.Hour,
	}
	under, goOn := make(chan struct{}), make(chan struct{})
	first, end := begin(t, c, func(s *service) {
		s.approve = func(context.Context, order) error { close(under); <-goOn; return nil }
	})
	zktest.Eventually(t, testserver.Patience, "the replica to be ready and to lead", func() bool {
		return page(t, first, "/readyz") == http.StatusOK && first.shipping.IsLeader()
	})
	for _, name := range []string{"/livez", "/metrics", "/debug/locks"} {
		if code := page(t, first, name); code != http.StatusOK {
			t.Errorf("%s: %d", name, code)
		}
	}
	second, _ := begin(t, c, nil)

	var requests errgroup.Group
	requests.Go(func() error { _, err := send(ctx, first.url+"/orders?id=1&customer=ann&amount=5"); return err })
	<-under
	requests.Go(func() error { // waits behind it, in another process
		_, err := place(ctx, []string{second.url}, 0, order{"2", "ann", 7})
		return err
	})
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	zktest.Eventually(t, testserver.Patience, "the replica to say that it is not ready", func() bool {
		return page(t, first, "/readyz") == http.StatusServiceUnavailable
	})
	if len(ended) > 0 || !first.shipping.IsLeader() {
		t.Error("it does not wait for the request")
	}
	close(goOn)
	must(t, <-ended)
	must(t, requests.Wait())
	zktest.Eventually(t, testserver.Patience, "the other replica to lead", second.shipping.IsLeader)
	if r, err := place(ctx, []string{second.url}, 0, order{"1", "ann", 5}); err != nil || r.Number != 1 || r.Total != 5 {
		t.Errorf("the order again: %+v, %v", r, err)
	}
}

// While ZooKeeper is away a replica starts, is alive and not ready, and answers 503.
func TestNoZooKeeper(t *testing.T) {
	server := zktest.Start(t)
	server.Refuse(true)
	s, _ := begin(t, config{
		zk: server.ConnectString(), db: filepath.Join(t.TempDir(), "orders.db"),
		timeout: 10 * time.Second, shipEvery: time.Second, reportEvery: time.Hour,
	}, nil)
	if live, ready := page(t, s, "/livez"), page(t, s, "/readyz"); live != http.StatusOK || ready != http.StatusServiceUnavailable {
		t.Errorf("livez %d, readyz %d", live, ready)
	}
	if _, err := send(t.Context(), s.url+"/orders?id=1&customer=ann&amount=5"); !errors.Is(err, errAgain) {
		t.Errorf("an order: %v", err)
	}
	server.Refuse(false)
	_, err := place(t.Context(), []string{s.url}, 0, order{"1", "ann", 5})
	must(t, err)
}
