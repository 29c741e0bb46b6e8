package session_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A resolver that has failed is asked again. A list that changes counts from the next dial on, and the session lives.
func TestResolver(t *testing.T) {
	t.Parallel()
	first, second := testserver.Proxy(t), testserver.Proxy(t)
	var now atomic.Pointer[string]
	var failures atomic.Int32
	resolve := func(context.Context) ([]string, error) {
		if at := now.Load(); at != nil {
			return []string{*at, "not a server"}, nil
		}
		if failures.Add(1) == 3 {
			at := first.Addr()
			now.Store(&at)
		}
		return nil, errors.New("no leader")
	}
	m := testserver.Connect(t, "/resolved", session.WithTimeout(time.Minute), session.WithResolver(resolve),
		session.WithBackoff(time.Millisecond, time.Millisecond))
	s := testserver.Session(t, m)
	if failures.Load() != 3 || m.Chroot() != "/resolved" {
		t.Errorf("after %d failures, below %s", failures.Load(), m.Chroot())
	}

	at := second.Addr()
	now.Store(&at)
	must(t, s.Sync(patient(t), "/"))
	first.Disconnect()
	zktest.Eventually(t, testserver.Patience, "a connection to the other server", func() bool {
		return s.Sync(patient(t), "/") == nil && second.Count(zktest.Any(zktest.OpSync)) > 0
	})
	must(t, s.Err())
}

// The error of a Connect that has waited in vain says what the resolver said.
func TestResolverFails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(patient(t))
	defer cancel()
	asked := 0
	_, err := session.Connect(ctx, "", session.WithResolver(func(context.Context) ([]string, error) {
		if asked++; asked == 2 { // one goroutine at a time
			cancel()
		}
		return nil, errors.New("no leader")
	}))
	wantErr(t, "connect", err, context.Canceled)
	if !strings.Contains(err.Error(), "ask the resolver: no leader") {
		t.Errorf("%v does not say why", err)
	}
}
