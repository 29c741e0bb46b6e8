package otelzk_test

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/session"
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

// For a program's own requests, too, a refusal that only describes the tree is no error.
func TestRefusals(t *testing.T) {
	dir := directory(t)
	c := newClient(t, dir)
	s, ctx := testserver.Session(t, c.m), patient(t)
	_, err := s.Enter(ctx, session.NewNode{Dir: dir, Name: "node", Fixed: true})
	must(t, err)
	for _, r := range []struct {
		op, code string
		err      error
		call     func() error
		failed   bool
	}{
		{"create", "NODEEXISTS", zk.ErrNodeExists, func() error { _, err := s.Create(ctx, dir+"/node", nil, session.Persistent); return err }, false},
		{"getData", "NONODE", zk.ErrNoNode, func() error { _, _, err := s.Get(ctx, dir+"/none"); return err }, false},
		{"getChildren", "NONODE", zk.ErrNoNode, func() error { _, _, err := s.Children(ctx, dir+"/none"); return err }, false},
		{"exists", "NONODE", nil, func() error { _, err := s.Exists(ctx, dir+"/none"); return err }, false},
		{"setData", "NONODE", zk.ErrNoNode, func() error { _, err := s.Set(ctx, dir+"/none", nil, -1); return err }, false},
		{"setData", "BADVERSION", zk.ErrBadVersion, func() error { _, err := s.Set(ctx, dir+"/node", nil, 7); return err }, false},
		{"delete", "NONODE", zk.ErrNoNode, func() error { return s.Delete(ctx, dir+"/none", -1) }, false},
		{"delete", "BADVERSION", zk.ErrBadVersion, func() error { return s.Delete(ctx, dir+"/node", 7) }, false},
		{"delete", "NOTEMPTY", zk.ErrNotEmpty, func() error { return s.Delete(ctx, dir, -1) }, false},
		{"multi", "BADVERSION", zk.ErrBadVersion, func() error {
			_, err := s.Multi(ctx, &zk.CheckVersionRequest{Path: dir + "/node", Version: 7})
			return err
		}, false},
		{"create", "NOCHILDRENFOREPHEMERALS", zk.ErrNoChildrenForEphemerals, func() error {
			_, err := s.Create(ctx, dir+"/node/child", nil, session.Persistent)
			return err
		}, true},
	} {
		c.spans.Reset()
		if err := r.call(); r.err == nil && err != nil || r.err != nil && !strings.Contains(err.Error(), r.err.Error()) {
			t.Errorf("%s: %v, want %v", r.op, err, r.err)
		}
		span := c.settled(t)[0]
		if span.Name() != r.op+" /" || attr(span, "db.response.status_code") != r.code || failed(span) != r.failed {
			t.Errorf("%s, %s: %s has %v, status %v", r.op, r.code, span.Name(), span.Attributes(), span.Status())
		}
	}
}
