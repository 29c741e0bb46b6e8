package otelzk_test

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/otelzk"
)

// failed reports whether a span has an error.
func failed(s sdktrace.ReadOnlySpan) bool {
	return s.Status().Code == codes.Error || attr(s, "error.type") != ""
}

// The first lock in a directory gets refusals, and creates the directory. None of them is an error. All spans have the
// chroot.
func TestFirstLockHasNoErrors(t *testing.T) {
	chroot := testserver.Path(t) + "/app"
	tel := newTelemetry()
	c := connectBelow(t, chroot, "/locks/new", tel, otelzk.New(tel.opts...))
	ctx, caller := c.tracer.Start(patient(t), "caller")
	lease, err := c.mx.Acquire(ctx)
	must(t, err)
	_, err = lease.Token(ctx)
	must(t, err)
	must(t, lease.Release(ctx))
	caller.End()
	refused := 0
	for _, s := range c.settled(t) {
		if s.Name() == "caller" {
			continue
		}
		if failed(s) {
			t.Errorf("%s: %v, status %v", s.Name(), s.Attributes(), s.Status())
		}
		if attr(s, "db.namespace") != chroot {
			t.Errorf("%s is in %q, want %q", s.Name(), attr(s, "db.namespace"), chroot)
		}
		if want := attr(s, "db.operation.name") + " " + chroot; s.SpanKind() == trace.SpanKindClient && s.Name() != want {
			t.Errorf("a request is called %q, want %q", s.Name(), want)
		}
		if attr(s, "db.response.status_code") == "NONODE" {
			refused++
		}
	}
	if refused < 3 {
		t.Errorf("%d requests were refused: is this the first lock?", refused)
	}
	namespace, code := attribute.String("db.namespace", chroot), attribute.String("db.response.status_code", "NONODE")
	if n := c.count(t, "db.client.operation.duration", namespace, code); n != uint64(refused) {
		t.Errorf("%d refusals are counted, of %d", n, refused)
	}
	if n := c.count(t, "db.client.operation.duration", attribute.String("error.type", "NONODE")); n > 0 {
		t.Errorf("%d of them as errors", n)
	}
}
