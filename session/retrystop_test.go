package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// With a WithRetry that says stop, requests fail with the error of their last try. Guaranteed
// deletes and dials go on.
func TestRetryThatStops(t *testing.T) {
	t.Parallel()
	p, _, s := behindProxy(t, 20*time.Second,
		session.WithRetry(func() backoff.BackOff { return &backoff.StopBackOff{} }))
	d, ctx := dir(t, s), patient(t)
	node, err := s.Create(ctx, d+"/n", nil, session.Ephemeral)
	must(t, err)

	f := p.CutBefore(zktest.On(zktest.OpGetData, node))
	_, _, err = s.Get(ctx, node)
	within(t, f.Hit(), "the cut")
	wantErr(t, "get", err, zk.ErrConnectionClosed)
	_, _, err = s.Get(ctx, node)
	must(t, err)

	f = p.CutBefore(zktest.On(zktest.OpDelete, node))
	removal := (*core.Session)(s).Remove(t.Context(), node)
	within(t, f.Hit(), "the cut")
	within(t, removal.Done(), "the removal")
	must(t, removal.Err())
	if names := testserver.Children(t, d); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
}

// A request that waits for its next try fails as soon as the session ends.
func TestRetryEndsWithSession(t *testing.T) {
	waits := make(chan struct{})
	p, m, s := behindProxy(t, 20*time.Second,
		session.WithRetry(func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) }),
		session.WithTrace(session.Trace{Retry: func(context.Context, session.RetryInfo) { close(waits) }}))
	p.CutBefore(zktest.On(zktest.OpGetData, "/"))
	failed := make(chan error, 1)
	go func() {
		_, _, err := s.Get(context.Background(), "/")
		failed <- err
	}()
	within(t, waits, "the wait for the next try")
	must(t, m.Close())
	select {
	case err := <-failed:
		wantErr(t, "get", err, session.ErrClosed)
	case <-patient(t).Done():
		t.Error("get still waits for its next try")
	}
}
