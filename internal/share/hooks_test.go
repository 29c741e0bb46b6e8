package share

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// No hook is called while a mutex of this package or of package queue is locked, since a hook may look at locks. Here all hooks
// do, in each way in which a turn is left or lost. The time is real: a mutex that is locked stops that of a bubble.
func TestNoProgramUnderMutex(t *testing.T) {
	longtest.InCI(t)
	var all []*Turns
	var ready atomic.Bool
	var looked sync.Map
	look := func(hook string) {
		looks := make(chan struct{})
		go func() {
			defer close(looks)
			for _, s := range all {
				s.WhenIdle(nil)
				s.why()
				if t := s.present(); t != nil {
					t.Holder()
					_ = t.Err()
				}
			}
			looked.Store(hook, true)
		}()
		select {
		case <-looks:
		case <-time.After(testserver.Patience):
			t.Errorf("the hook of %s cannot look at a lock", hook)
		}
	}
	proxy, patience := testserver.Proxy(t), session.WithTimeout(testserver.Patience)
	m := testserver.Connect(t, proxy.Addr(), patience, session.WithTrace(session.Trace{
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if ready.Load() {
				look(r.Op)
			}
			return ctx, nil
		},
		Hold: func(context.Context, session.HoldInfo) func(error) {
			look("hold")
			return func(error) { look("end of hold") }
		},
		Release: func(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) {
			look("release")
			return ctx, func(error) { look("end of release") }
		},
		Loss: func(context.Context, session.HoldInfo, error) { look("loss") },
	}))
	other := testserver.Connect(t, proxy.Addr(), patience)
	at := func(m *session.Manager, path string) *queue.Queue {
		q, err := queue.New(m, path)
		expect.NoError(t, err)
		return q
	}
	open := func() *queue.Queue { return at(m, testserver.Path(t)) }
	all = []*Turns{NewTurns(open(), mutex, 1, 0), NewTurns(open(), mutex, 1, longestKeep), NewReaders(open(), reader, longestKeep)}
	ready.Store(true)
	take := func(s *Turns) *queue.Lease {
		s.forgetHabit()
		l, err := s.Acquire(expect.Patient(t), false)
		expect.NoError(t, err)
		return l
	}
	giveBack := func(l *queue.Lease, err error) {
		t.Helper()
		expect.NoError(t, err)
		expect.NoError(t, l.Release(expect.Patient(t)))
	}
	var held []*queue.Lease
	for _, s := range all {
		giveBack(take(s), nil)
		giveBack(take(s), nil) // a kept turn is used
		r := mutex
		if s.readers {
			r = writer
		}
		giveBack(at(other, s.q.Path()).Acquire(expect.Patient(t), r)) // it comes to a kept turn
		giveBack(take(s), nil)
		s.GiveUpKept()
		l := take(s)
		testserver.Delete(t, l.Path())
		zktest.Eventually(t, testserver.Patience, "the loss of the node", func() bool { return l.Err() != nil })
		held = append(held, take(s))
	}
	expect.NoError(t, proxy.Expire(expect.Patient(t), testserver.Session(t, m).ID()))
	for _, l := range held {
		expect.Receive(t, "the loss of the session", l.Done())
	}
	for _, hook := range []string{"create", "getChildren", "getData", "delete", "hold", "end of hold", "release", "end of release", "loss"} {
		zktest.Eventually(t, testserver.Patience, "the hook of "+hook, func() bool { _, ok := looked.Load(hook); return ok })
	}
}
