package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A tenant at its limit keeps nobody else out, and its requests wait outside of the total. Places come back when their
// process dies.
func TestTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that no wait is over on a busy machine
		testTenants(t, zktest.Start(t))
	})
}

func testTenants(t *testing.T, server *zktest.Server) {
	ctx := t.Context()
	connect := func() *session.Manager {
		m, err := session.Open(server.Hosts(), session.WithDialer(server.Dialer()), quiet)
		must(t, err)
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	a, b := connect(), connect()
	inside, goOn := make(chan string, 100), make(chan struct{})
	ended := make(chan error, 100)
	begin := func(m *session.Manager, tenant string) {
		go func() {
			ended <- exportFor(ctx, m, tenant, func(ctx context.Context) error {
				inside <- tenant
				select {
				case <-goOn:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
		}()
	}
	for range perTenant {
		begin(a, "greedy")
		receive(t, "a place", inside)
	}
	total := newSem(t, b, "/limits/total", together)
	begin(b, "greedy")
	if err := receive(t, "the end of a wait", ended); !errors.Is(err, queue.ErrMaxWait) {
		t.Errorf("a wait of two seconds: %v", err)
	}
	const waiting = 3
	for range waiting {
		begin(b, "greedy")
	}
	synctest.Wait()
	for i := range together - perTenant { // waiters take nothing of the total
		release(t, take(t, total, 1))
		begin(b, fmt.Sprint("other ", i))
		receive(t, "a place of another tenant", inside)
	}
	busy(t, total, 1)

	must(t, server.Expire(ctx, testserver.Session(t, a).ID())) // the process of the first three dies
	for range waiting {
		if tenant := receive(t, "a place that has come back", inside); tenant != "greedy" {
			t.Errorf("a place for %s", tenant)
		}
	}
	for range perTenant {
		if err := receive(t, "the loss", ended); !errors.Is(err, session.ErrLost) {
			t.Errorf("the work of the process that died: %v", err)
		}
	}
	close(goOn)
	for range together {
		if err := receive(t, "the end", ended); err != nil {
			t.Error(err)
		}
	}
}
