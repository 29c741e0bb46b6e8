package share

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const dir = "/lock"

var (
	mutex  = queue.Request{Kind: queue.Mutex()}
	reader = queue.Request{Kind: queue.Reader()}
	writer = queue.Request{Kind: queue.Writer()}
)

// world is a bubble, in which all processes share turns at dir.
type world struct{ *bubble.World }

func run(t *testing.T, f func(w world)) {
	t.Helper()
	bubble.Run(t, func(w *bubble.World) { f(world{w}) })
}

// process is a client whose goroutines share turns.
type process struct {
	*Turns
	w world
	m *session.Manager
}

func (w world) process(m *session.Manager, path string, open func(*queue.Queue) *Turns) *process {
	w.T.Helper()
	return &process{open(w.queue(m, path)), w, m}
}

func (w world) queue(m *session.Manager, path string) *queue.Queue {
	w.T.Helper()
	q, err := queue.New(m, path)
	w.Must(err)
	return q
}

// hands returns a process that hands turns over.
func (w world) hands(handovers int, opts ...session.Option) *process {
	w.T.Helper()
	return w.process(w.Connect(opts...), dir, func(q *queue.Queue) *Turns { return NewTurns(q, mutex, handovers, 0) })
}

// keeping returns what makes turns that are kept.
func keepingTurns(q *queue.Queue) *Turns { return NewTurns(q, mutex, 0, longestKeep) }

// keeps returns a process that keeps its turns.
func (w world) keeps(opts ...session.Option) *process {
	w.T.Helper()
	return w.process(w.Connect(opts...), dir, keepingTurns)
}

// readers returns a process whose readers share turns, and keep them.
func (w world) readers() *process {
	w.T.Helper()
	return w.process(w.Connect(), dir, func(q *queue.Queue) *Turns { return NewReaders(q, reader, longestKeep) })
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

// forgetHabit makes the next turn worth keeping.
func (s *Turns) forgetHabit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.habit = habit{}
}

// is wants a condition, when nothing more can happen.
func (p *process) is(c condition) {
	p.w.T.Helper()
	if p.w.Pass(0); p.in() != c {
		p.w.Errorf("%s, want %s", p.in(), c)
	}
}

// hold takes the lock, which is free, or is kept.
func (p *process) hold() *queue.Lease {
	p.w.T.Helper()
	l, err := p.Acquire(p.w.Context(), false)
	p.w.Must(err)
	return l
}

// kept takes the lock and gives it back. The turn is kept, and the watch on its node is set.
func (p *process) kept() *queue.Lease {
	p.w.T.Helper()
	p.forgetHabit()
	l := p.hold()
	p.w.token(l)
	p.w.giveBack(l)
	p.is(keeping)
	return l
}

// begin begins an acquisition, and returns when that can do nothing but wait.
func (w world) begin(acquire func(context.Context) (*queue.Lease, error)) *bubble.Pending[*queue.Lease] {
	return bubble.Begin(w.World, acquire)
}

func (p *process) begin() *bubble.Pending[*queue.Lease] {
	return p.w.begin(func(ctx context.Context) (*queue.Lease, error) { return p.Acquire(ctx, false) })
}

// beginIn begins an acquisition of a queue, as another process does.
func (w world) beginIn(q *queue.Queue, r queue.Request) *bubble.Pending[*queue.Lease] {
	return w.begin(func(ctx context.Context) (*queue.Lease, error) { return q.Acquire(ctx, r) })
}

func (w world) giveBack(l *queue.Lease) {
	w.T.Helper()
	w.Must(l.Release(w.Context()))
}

// unwanted gives back a lease that nobody has used.
func (w world) unwanted(l *queue.Lease) {
	w.T.Helper()
	w.Must(l.StartRelease(w.Context(), false).Wait(w.Context()))
}

func (w world) token(l *queue.Lease) int64 {
	w.T.Helper()
	n, err := l.Token(w.Context())
	w.Must(err)
	return n
}

// nodes wants so many of them at dir.
func (w world) nodes(n int) {
	w.T.Helper()
	w.WantNodes("in the end", dir, n)
}

// of matches the requests of a process for its lock.
func (p *process) of(ops ...zktest.Op) zktest.Match {
	id, any := p.w.Session(p.m).ID(), zktest.Any(ops...)
	return func(r zktest.Request) bool { return r.Session == id && len(r.Path) > 1 && (len(ops) == 0 || any(r)) }
}

// soon is enough for all that follows at once.
const soon = time.Second
