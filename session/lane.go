package session

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/rounds"
)

// lane runs functions of the program in order. They may block, and one that ends its goroutine does not end the lane.
type lane struct {
	mu      sync.Mutex
	queue   []func()
	running bool
}

// add runs f later, unless most functions wait.
func (l *lane) add(most int, f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) >= most {
		return false
	}
	l.queue = append(l.queue, f)
	if !l.running {
		l.running = true
		go l.run()
	}
	return true
}

func (l *lane) run() {
	over := false
	defer func() {
		if !over { // f called runtime.Goexit
			go l.run()
		}
	}()
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.running, over = false, true
			l.queue = nil
			l.mu.Unlock()
			return
		}
		f := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		l.mu.Unlock()
		f()
	}
}

// subscriber is told of changes of state. With a lane of its own, a slow one delays no other.
type subscriber struct {
	f    func(Change)
	lane lane
	over atomic.Bool
}

func (s *subscriber) put(c Change) {
	s.lane.add(math.MaxInt, func() {
		if !s.over.Load() {
			s.f(c)
		}
	})
}

const mostLines = 1000

// logQueue has lines for a handler of the program, which may hang: that must not delay a lock, a dial or a delete.
type logQueue struct {
	lane
	dropped atomic.Int64
}

// queueHandler puts lines into a queue. The lane asks the handler behind it whether it is enabled.
type queueHandler struct {
	to func() slog.Handler // called by the lane: a handler of the program may hang in WithAttrs too
	q  *logQueue
}

func (h queueHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h queueHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return queueHandler{sync.OnceValue(func() slog.Handler { return h.to().WithAttrs(attrs) }), h.q}
}

func (h queueHandler) WithGroup(name string) slog.Handler {
	return queueHandler{sync.OnceValue(func() slog.Handler { return h.to().WithGroup(name) }), h.q}
}

func (h queueHandler) Handle(ctx context.Context, r slog.Record) error {
	ctx, r = context.WithoutCancel(ctx), r.Clone()
	write := func(r slog.Record) {
		if to := h.to(); to.Enabled(ctx, r.Level) {
			_ = to.Handle(ctx, r)
		}
	}
	if !h.q.add(mostLines, func() { write(r) }) && h.q.dropped.Add(1) == 1 {
		h.q.add(math.MaxInt, func() { // in the place of the first line that was dropped
			note := slog.NewRecord(r.Time, slog.LevelWarn, "lines were dropped because the log is slow", 0)
			note.AddAttrs(slog.Int64("dropped", h.q.dropped.Swap(0)))
			write(note)
		})
	}
	return nil
}

func (q *logQueue) flush(d time.Duration) {
	written := make(chan struct{})
	q.add(math.MaxInt, func() { close(written) })
	_ = rounds.Until(context.Background(), written, d)
}
