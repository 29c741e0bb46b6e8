package hold

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// mutexKind is the kind of lock that the tests in package queue use.
var mutexKind = &kinds.Kind{Name: "mutex", Prefixes: []string{kinds.PrefixLock}, Policy: decide.Exclusive}

// process is a client that locks by way of a local queue, behind a proxy.
type process struct {
	*Local
	m     *session.Manager
	proxy *zktest.Proxy
}

func newProcess(t *testing.T, dir string, r place.Request, handovers int, opts ...session.Option) *process {
	t.Helper()
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), append(opts, session.WithTimeout(testserver.Patience))...)
	q, err := place.New((*core.Manager)(m), dir)
	expect.NoError(t, err)
	r.Kind = mutexKind
	l, err := NewLocal(q, r, LocalConfig{Handovers: handovers})
	expect.NoError(t, err)
	return &process{l, m, proxy}
}

// waits is an Acquire that is under way.
type waits struct {
	cancel context.CancelFunc
	done   chan outcome
}

// outcome is what an Acquire returned.
type outcome struct {
	lease *place.Lease
	err   error
}

// wait begins an Acquire, and returns when there are n waiters.
func (p *process) wait(t *testing.T, n int) *waits {
	t.Helper()
	return p.waitWith(t, expect.Patient(t), n)
}

func (p *process) waitWith(t *testing.T, ctx context.Context, n int) *waits {
	t.Helper()
	w := p.begin(ctx)
	p.settle(t, n)
	return w
}

// begin begins an Acquire.
func (p *process) begin(ctx context.Context) *waits {
	ctx, cancel := context.WithCancel(ctx)
	w := &waits{cancel, make(chan outcome, 1)}
	go func() {
		lease, err := p.Acquire(ctx)
		w.done <- outcome{lease, err}
	}()
	return w
}

// deaf keeps the events of watches from the turns of the process, until hear is called.
func (p *process) deaf(t *testing.T) (hear func()) {
	t.Helper()
	goOn := make(chan struct{})
	(*core.Session)(testserver.Session(t, p.m)).InTurn(func() { <-goOn })
	hear = sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(hear)
	return hear
}

// settle waits until there are n waiters.
func (p *process) settle(t *testing.T, n int) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "the number of waiters", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.waiting.Len() == n
	})
}

func (w *waits) lease(t *testing.T) *place.Lease {
	t.Helper()
	g := <-w.done // bounded by its context
	expect.NoError(t, g.err)
	return g.lease
}

func (w *waits) fails(t *testing.T, target error) {
	t.Helper()
	if g := <-w.done; !errors.Is(g.err, target) {
		t.Fatalf("Acquire: %v, want %v", g.err, target)
	}
}

func (p *process) hold(t *testing.T) *place.Lease {
	t.Helper()
	l, err := p.Acquire(expect.Patient(t))
	expect.NoError(t, err)
	return l
}

func giveBack(t *testing.T, l *place.Lease) {
	t.Helper()
	expect.NoError(t, l.Release(expect.Patient(t), place.Done))
}

func tokenOf(t *testing.T, l *place.Lease) int64 {
	t.Helper()
	n, err := l.Token(expect.Patient(t))
	expect.NoError(t, err)
	return n
}

// lostBy waits until a lease is lost.
func lostBy(t *testing.T, l *place.Lease) {
	t.Helper()
	ctx, cancel := l.Context(expect.Patient(t))
	defer cancel()
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, session.ErrLost) || !errors.Is(l.Err(), session.ErrLost) {
		t.Fatalf("cause %v, error %v", cause, l.Err())
	}
}
