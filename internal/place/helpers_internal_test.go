package place

import (
	"context"
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// mutexKind is the kind of lock that the tests in package queue use.
var mutexKind = &kinds.Kind{Name: "mutex", Prefixes: []string{kinds.PrefixLock}, Policy: decide.Exclusive}

// process is a client with a queue, behind a proxy.
type process struct {
	q     *Queue
	r     Request
	m     *session.Manager
	proxy *zktest.Proxy
}

func newProcess(t *testing.T, dir string, r Request, opts ...session.Option) *process {
	t.Helper()
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), append(opts, session.WithTimeout(testserver.Patience))...)
	q, err := New((*core.Manager)(m), dir)
	expect.NoError(t, err)
	r.Kind = mutexKind
	return &process{q, r, m, proxy}
}

func (p *process) hold(t *testing.T) *Lease {
	t.Helper()
	l, err := p.q.Acquire(expect.Patient(t), p.r)
	expect.NoError(t, err)
	return l
}

func giveBack(t *testing.T, l *Lease) {
	t.Helper()
	expect.NoError(t, l.Release(expect.Patient(t), Done))
}

func tokenOf(t *testing.T, l *Lease) int64 {
	t.Helper()
	n, err := l.Token(expect.Patient(t))
	expect.NoError(t, err)
	return n
}

// lostBy waits until a lease is lost.
func lostBy(t *testing.T, l *Lease) {
	t.Helper()
	ctx, cancel := l.Context(expect.Patient(t))
	defer cancel()
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, session.ErrLost) || !errors.Is(l.Err(), session.ErrLost) {
		t.Fatalf("cause %v, error %v", cause, l.Err())
	}
}

func wantBusy(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrBusy) {
		t.Errorf("try: %v", err)
	}
}
