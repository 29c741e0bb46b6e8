package otelzk_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// dying reports whether a request depends on how the news of a loss arrives.
func dying(s sdktrace.ReadOnlySpan) bool {
	return s.SpanKind() == trace.SpanKindClient && s.Status().Code == codes.Error
}

// When a held lock is lost, its caller's span gets an event, and Unlock fails.
func TestLostWhileHeld(t *testing.T) {
	c := newClient(t, directory(t))
	ctx, caller := c.tracer.Start(patient(t), "caller")
	lease, err := c.mx.Acquire(ctx)
	must(t, err)
	_, err = lease.Token(patient(t)) // the guard has sent its requests
	must(t, err)
	c.expire(t)
	receive(t, "the loss", lease.Done())
	hasEvent(t, caller.(sdktrace.ReadOnlySpan), "zklock.loss", "error.type", "session_expired")
	if err := lease.Release(context.Background()); !errors.Is(err, session.ErrLost) {
		t.Fatal(err)
	}
	caller.End()
	sameTree(t, c.tree(t, dying), `
caller
  zklock lock mutex acquired position=0 attempts=1
    create / CLIENT lock-
    getChildren / CLIENT .
    getData / CLIENT lock-0000000000
  zklock hold mutex lost lock-0000000000 type=session_expired ERROR links=1
  zklock unlock mutex lost lock-0000000000 type=session_expired ERROR links=1
`)
}

// A Lock whose session is lost goes on in the next session, with an event.
func TestLostWhileWaiting(t *testing.T) {
	dir := directory(t)
	c := newClient(t, dir)
	holder, wait, _ := contend(t, c, dir)
	c.expire(t)
	c.started(t, "zklock watch", 1)
	c.knows(t, 4)
	lock := c.started(t, "zklock lock", 0)
	hasEvent(t, lock, "zklock.retry", "zklock.retry.operation", "acquire")
	hasEvent(t, lock, "zklock.retry", "error.type", "session_expired")
	holder.unlock(t)
	must(t, wait())
	c.unlock(t)
	// The wait was ended by the loss of the connection or by that of the session.
	got := strings.ReplaceAll(c.tree(t, dying), "zklock watch failed lock-0000000000 type=session_expired ERROR", "zklock watch lock-0000000000")
	sameTree(t, got, `
caller
  zklock lock mutex acquired position=1 attempts=2 links=1
    create / CLIENT lock-
    getChildren / CLIENT .
    getData / CLIENT lock-0000000001
    getData / CLIENT lock-0000000000
    zklock watch lock-0000000000 links=1
    create / CLIENT lock-
    getChildren / CLIENT .
    getData / CLIENT lock-0000000002
    getData / CLIENT lock-0000000000
    zklock watch lock-0000000000 links=1
  zklock hold mutex released lock-0000000002 links=1
  zklock unlock mutex released lock-0000000002 links=1
    delete / CLIENT lock-0000000002
`)
}

// Each try of a request is a span, and each further try an event.
func TestRetry(t *testing.T) {
	dir := directory(t)
	c := newClient(t, dir)
	c.proxy.CutAfterCommit(zktest.On(zktest.OpDelete, dir))
	lease, err := c.mx.Acquire(patient(t))
	must(t, err)
	must(t, lease.Release(patient(t)))
	c.settled(t)
	lost := c.started(t, "delete /", 0)
	if attr(lost, "db.response.status_code") != "CONNECTIONLOSS" || attr(lost, "error.type") != "CONNECTIONLOSS" || lost.Status().Code != codes.Error {
		t.Errorf("delete: %v, status %v", lost.Attributes(), lost.Status())
	}
	again := c.started(t, "delete /", 1)
	if attr(again, "db.response.status_code") != "NONODE" {
		t.Errorf("second delete: %v", again.Attributes())
	}
	unlock := c.started(t, "zklock unlock", 0)
	for _, s := range []sdktrace.ReadOnlySpan{lost, again} {
		if s.Parent().SpanID() != unlock.SpanContext().SpanID() {
			t.Error("a delete is not the unlock's")
		}
	}
	hasEvent(t, unlock, "zklock.retry", "zklock.retry.operation", "delete")
	hasEvent(t, unlock, "zklock.retry", "error.type", "CONNECTIONLOSS")
	if attr(unlock, "zklock.outcome") != "released" || unlock.Status().Code != codes.Unset {
		t.Errorf("unlock: %v, status %v", unlock.Attributes(), unlock.Status())
	}
}
