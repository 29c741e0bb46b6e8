package session

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// lane runs functions in order, in a goroutine that lives as long as there are some. It is for functions of the program,
// which may block. One that ends its goroutine does not end the lane.
type lane struct {
	mu      sync.Mutex
	queue   []func()
	running bool
}

func (l *lane) add(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, f)
	if !l.running {
		l.running = true
		go l.run()
	}
}

func (l *lane) run() {
	over := false
	defer func() {
		if !over { // by runtime.Goexit
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

// waiting returns how many functions have not begun.
func (l *lane) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}

// subscriber is told of changes of state. It has a lane of its own, so a slow one delays no other.
type subscriber struct {
	f    func(Change)
	lane lane
	over atomic.Bool
}

func (s *subscriber) put(c Change) {
	s.lane.add(func() {
		if !s.over.Load() {
			s.f(c)
		}
	})
}

// mostLines bounds the lines that wait for a handler that hangs.
const mostLines = 1000

// queued returns a logger that hands its lines on to log in a goroutine of its own, and the queue in between. The handler
// of log is the program's. It can be slow, hang or end its goroutine, and none of that may delay a lock, a dial or a
// delete. The queue keeps the order of the lines. If it is full, it drops lines, and a line says how many.
func queued(log *slog.Logger) (*slog.Logger, *logLines) {
	q := new(logLines)
	return slog.New(queueHandler{log.Handler(), q}), q
}

type queueHandler struct {
	to slog.Handler
	q  *logLines
}

// Enabled does not ask the program's handler, which is asked in the goroutine.
func (h queueHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h queueHandler) Handle(ctx context.Context, r slog.Record) error {
	h.q.put(logLine{context.WithoutCancel(ctx), h.to, r.Clone()})
	return nil
}

func (h queueHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return queueHandler{h.to.WithAttrs(attrs), h.q}
}

func (h queueHandler) WithGroup(name string) slog.Handler {
	return queueHandler{h.to.WithGroup(name), h.q}
}

// logLines has the lines of a logger that are not written yet.
type logLines struct {
	lane lane

	mu      sync.Mutex
	waiting int
	dropped int     // lines for which there was no room since the last one that waits
	last    logLine // the last of the dropped lines
}

type logLine struct {
	ctx    context.Context
	to     slog.Handler
	record slog.Record
}

func (q *logLines) put(l logLine) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting >= mostLines {
		q.dropped, q.last = q.dropped+1, l
		return
	}
	q.noteDroppedLocked()
	q.addLocked(l)
}

func (q *logLines) addLocked(l logLine) {
	q.waiting++
	q.lane.add(func() {
		q.mu.Lock()
		if q.waiting--; q.waiting == 0 {
			q.noteDroppedLocked()
		}
		q.mu.Unlock()
		if l.to.Enabled(l.ctx, l.record.Level) {
			_ = l.to.Handle(l.ctx, l.record)
		}
	})
}

// noteDroppedLocked puts a line about the dropped lines into the queue, in their place.
func (q *logLines) noteDroppedLocked() {
	if q.dropped == 0 {
		return
	}
	note := q.last
	note.record = slog.NewRecord(note.record.Time, slog.LevelWarn, "lines were dropped because the log is slow", 0)
	note.record.AddAttrs(slog.Int("dropped", q.dropped))
	q.dropped, q.last = 0, logLine{}
	q.addLocked(note)
}

// flush waits until all lines are written, but no longer than d.
func (q *logLines) flush(d time.Duration) {
	written := make(chan struct{})
	q.lane.add(func() {
		q.lane.add(func() { close(written) }) // behind a note about dropped lines, if that comes last
	})
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-written:
	case <-limit.C:
	}
}
