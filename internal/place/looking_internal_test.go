package place

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A look at a lease can be the first to see that its session has ended. It marks the lease as lost, and
// neither calls a hook nor waits for one. The hooks are called later, that for the loss before the end of the
// hold.
func TestLookingCallsNoHook(t *testing.T) {
	srv := zktest.Start(t)
	calls, goOn := make(chan string, 10), make(chan struct{})
	m := testserver.Connect(t, srv.ConnectString(), session.WithTrace(session.Trace{
		Hold: func(context.Context, session.HoldInfo) func(error) { return func(error) { calls <- "end of Hold" } },
		Loss: func(context.Context, session.HoldInfo, error) { calls <- "Loss"; <-goOn },
	}))
	q, err := New((*core.Manager)(m), "/lock")
	expect.NoError(t, err)
	l, err := q.Acquire(expect.Patient(t), Request{Kind: mutexKind})
	expect.NoError(t, err)
	s, err := m.Session(expect.Patient(t))
	expect.NoError(t, err)

	held.mu.Lock() // the end of the session ends no turn before this is unlocked
	unlock := sync.OnceFunc(held.mu.Unlock)
	defer unlock()
	expect.NoError(t, srv.Expire(expect.Patient(t), s.ID()))
	<-s.Done()
	looked := make(chan error, 1)
	go func() { looked <- l.Err() }()
	select {
	case err := <-looked:
		if !errors.Is(err, session.ErrLost) {
			t.Errorf("Err: %v", err)
		}
	case <-time.After(testserver.Patience):
		t.Fatal("Err waits for a hook")
	}
	select {
	case <-l.Done():
	default:
		t.Error("Err has seen the loss, and Done is open")
	}
	unlock()
	if first := <-calls; first != "Loss" {
		t.Errorf("the first call is %s", first)
	}
	if err := l.Release(expect.Patient(t), Done); !errors.Is(err, session.ErrLost) { // waits for no hook either
		t.Errorf("Release: %v", err)
	}
	select {
	case call := <-calls:
		t.Errorf("%s was called before the Loss hook had returned", call)
	default:
	}
	close(goOn)
	if second := <-calls; second != "end of Hold" {
		t.Errorf("the second call is %s", second)
	}
}

// If the session ends before the Hold hook has returned, the hooks for the loss are called after it.
func TestLossInHoldHook(t *testing.T) {
	srv := zktest.Start(t)
	calls := make(chan string, 10)
	var m *session.Manager
	m = testserver.Connect(t, srv.ConnectString(), session.WithTrace(session.Trace{
		Hold: func(ctx context.Context, _ session.HoldInfo) func(error) {
			l, _ := LeaseFrom(ctx)
			s, err := m.Session(ctx)
			if err == nil {
				err = srv.Expire(ctx, s.ID())
			}
			if err != nil {
				t.Error(err)
			}
			<-l.Done()
			calls <- "Hold"
			return func(error) { calls <- "end of Hold" }
		},
		Loss: func(context.Context, session.HoldInfo, error) { calls <- "Loss" },
	}))
	q, err := New((*core.Manager)(m), "/lock")
	expect.NoError(t, err)
	l, err := q.Acquire(expect.Patient(t), Request{Kind: mutexKind})
	expect.NoError(t, err)
	if err := l.Err(); !errors.Is(err, session.ErrLost) {
		t.Errorf("Err: %v", err)
	}
	for _, want := range []string{"Hold", "Loss", "end of Hold"} {
		if got := <-calls; got != want {
			t.Errorf("%s was called, want %s", got, want)
		}
	}
}
