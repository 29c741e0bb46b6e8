package share

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Bad input is an error before any I/O.
func TestInvalidTurns(t *testing.T) {
	q := queueOn(t, new(session.Manager), "/a")
	configured := queue.Request{Kind: &queue.Kind{Name: "semaphore", Prefixes: []string{queue.PrefixLease}, Configuration: &queue.Configuration{
		Config: []byte("1"), Policy: func(queue.Node, queue.Config) (queue.Policy, error) { return queue.Policy{}, nil },
	}}}
	for what, open := range map[string]func() (*Turns, error){
		"nothing to share":             func() (*Turns, error) { return NewTurns(q, mutex, 0, 0) },
		"negative hand-overs":          func() (*Turns, error) { return NewTurns(q, mutex, -1, time.Second) },
		"a negative time":              func() (*Turns, error) { return NewTurns(q, mutex, 1, -1) },
		"more than a minute":           func() (*Turns, error) { return NewTurns(q, mutex, 1, time.Minute+1) },
		"no kind":                      func() (*Turns, error) { return NewTurns(q, queue.Request{}, 1, 0) },
		"a configuration":              func() (*Turns, error) { return NewTurns(q, configured, 1, time.Second) },
		"readers that keep nothing":    func() (*Turns, error) { return NewReaders(q, reader, 0) },
		"readers, more than a minute":  func() (*Turns, error) { return NewReaders(q, reader, time.Minute+1) },
		"readers with a configuration": func() (*Turns, error) { return NewReaders(q, configured, time.Second) },
	} {
		if s, err := open(); s != nil || !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v, %v", what, s, err)
		}
	}
	if _, err := NewTurns(q, configured, 1, 0); err != nil {
		t.Errorf("hand-overs of a kind with a configuration: %v", err)
	}
}

// A waiter that gives up says what it has waited for: the holder of this process, or the contender that all wait behind. That
// is so too if it may wait for a time only.
func TestWhyItWaited(t *testing.T) {
	dir := testserver.Path(t)
	p, other := newProcess(t, dir, 1), newProcess(t, dir, 1)
	fails := func(who *process, reason string) (wait *queue.WaitError) {
		t.Helper()
		_, err := who.Acquire(queue.WithMaxWait(expect.Patient(t), 50*time.Millisecond), false)
		if !errors.Is(err, queue.ErrMaxWait) || errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &wait) {
			t.Fatal(err)
		}
		if !strings.HasPrefix(wait.Reason, reason) {
			t.Errorf("%s: want %s", wait.Reason, reason)
		}
		return wait
	}
	l := p.hold(t)
	if wait := fails(p, "held by this process for "); wait.Ahead.Path != l.Path() || !wait.Ahead.Own || wait.Ahead.HeldSince.IsZero() {
		t.Errorf("%+v", wait.Ahead)
	}
	first := other.wait(t, 1)
	testserver.WaitChildren(t, dir, 2)
	if wait := fails(other, ""); wait.Ahead.Path != "" && wait.Ahead.Path != l.Path() {
		t.Errorf("%+v", wait.Ahead)
	}
	giveBack(t, l)
	giveBack(t, first.lease(t))
}
