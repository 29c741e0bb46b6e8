package share

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// process is a client whose goroutines share turns, behind a proxy.
type process struct {
	*Turns
	m     *session.Manager
	proxy *zktest.Proxy
}

// newProcess returns a process that hands turns over.
func newProcess(t *testing.T, dir string, handovers int, opts ...session.Option) *process {
	t.Helper()
	return processWith(t, dir, func(q *queue.Queue) *Turns { return NewTurns(q, mutex, handovers, 0) }, opts...)
}

// newKeeper returns a process that keeps its turns, for a minute: a test that depends on the time has its own.
func newKeeper(t *testing.T, dir string, handovers int, opts ...session.Option) *process {
	t.Helper()
	return processWith(t, dir, func(q *queue.Queue) *Turns { return NewTurns(q, mutex, handovers, longestKeep) }, opts...)
}

// newReaders returns a process whose readers share turns, and keep them for a minute.
func newReaders(t *testing.T, dir string, opts ...session.Option) *process {
	t.Helper()
	return processWith(t, dir, func(q *queue.Queue) *Turns { return NewReaders(q, reader, longestKeep) }, opts...)
}

var (
	mutex  = queue.Request{Kind: queue.Mutex()}
	reader = queue.Request{Kind: queue.Reader()}
	writer = queue.Request{Kind: queue.Writer()}
)

func processWith(t *testing.T, dir string, open func(*queue.Queue) *Turns, opts ...session.Option) *process {
	t.Helper()
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), append([]session.Option{session.WithTimeout(testserver.Patience)}, opts...)...)
	return &process{turnsOn(t, m, dir, open), m, proxy}
}

func turnsOn(t *testing.T, m *session.Manager, dir string, open func(*queue.Queue) *Turns) *Turns {
	t.Helper()
	return open(queueOn(t, m, dir))
}

func queueOn(t *testing.T, m *session.Manager, dir string) *queue.Queue {
	t.Helper()
	q, err := queue.New(m, dir)
	expect.NoError(t, err)
	return q
}

// condition is what Turns have in the directory.
type condition string

const (
	idle      condition = "idle"
	trying    condition = "trying"
	acquiring condition = "acquiring"
	holding   condition = "holding"
	keeping   condition = "keeping"
)

func (s *Turns) in() condition {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.trying:
		return trying
	case s.acquiring != nil:
		return acquiring
	case s.turn == nil:
		return idle
	case s.turn.holds == 0:
		return keeping
	}
	return holding
}

// present returns the turn that the Turns have.
func (s *Turns) present() *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn
}

// want waits for a condition, which follows an event.
func (s *Turns) want(t *testing.T, c condition) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, string(c), func() bool { return s.in() == c })
}

// forgetHabit makes the next turn worth keeping.
func (s *Turns) forgetHabit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.habit = habit{}
}

// kept takes the lock and gives it back, until the turn is kept. The watch on its node is set. ZooKeeper 3.4 may tell of
// our own node as if another contender had come.
func (p *process) kept(t *testing.T) *queue.Lease {
	t.Helper()
	for range 20 {
		l := p.hold(t)
		tokenOf(t, l)
		giveBack(t, l)
		if p.in() == keeping {
			return l
		}
		p.forgetHabit()
	}
	t.Fatal("no turn is kept")
	return nil
}

// waits is an Acquire that is under way.
type waits struct {
	cancel context.CancelFunc
	done   chan outcome
}

// outcome is what an Acquire returned.
type outcome struct {
	lease *queue.Lease
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
		lease, err := p.Acquire(ctx, false)
		w.done <- outcome{lease, err}
	}()
	return w
}

// beginIn begins an acquisition of a queue.
func beginIn(q *queue.Queue, ctx context.Context, r queue.Request) *waits {
	ctx, cancel := context.WithCancel(ctx)
	w := &waits{cancel, make(chan outcome, 1)}
	go func() {
		lease, err := q.Acquire(ctx, r)
		w.done <- outcome{lease, err}
	}()
	return w
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

func (w *waits) lease(t *testing.T) *queue.Lease {
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

// pending fails the test if the acquisition returns within a moment, in which it would return if it could.
func (w *waits) pending(t *testing.T) {
	t.Helper()
	select {
	case g := <-w.done:
		t.Fatalf("it waits no longer: %v, %v", g.lease, g.err)
	case <-time.After(20 * time.Millisecond):
	}
}

func (p *process) hold(t *testing.T) *queue.Lease {
	t.Helper()
	l, err := p.Acquire(expect.Patient(t), false)
	expect.NoError(t, err)
	return l
}

func giveBack(t *testing.T, l *queue.Lease) {
	t.Helper()
	expect.NoError(t, l.Release(expect.Patient(t)))
}

// unwanted gives back a lease that nobody has used.
func unwanted(t *testing.T, l *queue.Lease) {
	t.Helper()
	expect.NoError(t, l.StartRelease(expect.Patient(t), false).Wait(expect.Patient(t)))
}

func tokenOf(t *testing.T, l *queue.Lease) int64 {
	t.Helper()
	n, err := l.Token(expect.Patient(t))
	expect.NoError(t, err)
	return n
}

// lostBy waits until a lease is lost.
func lostBy(t *testing.T, l *queue.Lease) {
	t.Helper()
	expect.Receive(t, "the loss", l.Done())
	if !errors.Is(l.Err(), session.ErrLost) {
		t.Fatalf("error %v", l.Err())
	}
}

// revoke asks the holder of a node to give the lock up.
func revoke(t *testing.T, l *queue.Lease) {
	t.Helper()
	_, err := testserver.Admin(t).Set(l.Path(), []byte(queue.RevokeMessage), -1)
	expect.NoError(t, err)
}
