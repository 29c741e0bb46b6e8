package logbook

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Queued returns a logger that hands its lines on to log in a goroutine of its own, and the queue in between.
// The handler of log is the user's. It can be slow, hang or end its goroutine, and none of that may delay a
// lock, a dial or a delete. There is a goroutine only while there are lines to write. The queue keeps the
// order of the lines. If it is full, it drops lines, and a line says how many.
func Queued(log *slog.Logger) (*slog.Logger, *Queue) {
	q := &Queue{idle: make(chan struct{})}
	close(q.idle)
	return slog.New(queueHandler{log.Handler(), q}), q
}

// queueHandler is the handler of a logger that Queued returns.
type queueHandler struct {
	to slog.Handler
	q  *Queue
}

// Enabled does not ask the user's handler, which is asked in the goroutine.
func (h queueHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h queueHandler) Handle(ctx context.Context, r slog.Record) error {
	h.q.put(queuedLine{context.WithoutCancel(ctx), h.to, r.Clone()})
	return nil
}

func (h queueHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return queueHandler{h.to.WithAttrs(attrs), h.q}
}

func (h queueHandler) WithGroup(name string) slog.Handler {
	return queueHandler{h.to.WithGroup(name), h.q}
}

// Queue has the lines of a logger that are not written yet. [Queued] makes it.
type Queue struct {
	mu      sync.Mutex
	lines   []queuedLine
	dropped int           // lines for which there was no room since the last of lines
	last    queuedLine    // the last of the dropped lines
	writing bool          // there is a goroutine
	idle    chan struct{} // closed while there is none
}

type queuedLine struct {
	ctx    context.Context
	to     slog.Handler
	record slog.Record
}

// maxQueued bounds the lines in the queue, for a handler that hangs.
const maxQueued = 1000

func (q *Queue) put(l queuedLine) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.lines) >= maxQueued {
		q.dropped, q.last = q.dropped+1, l
		return
	}
	q.noteDropped()
	q.lines = append(q.lines, l)
	if !q.writing {
		q.writing, q.idle = true, make(chan struct{})
		go q.write()
	}
}

// write writes lines until there are no more. If the handler ends the goroutine, another one goes on.
func (q *Queue) write() {
	done := false
	defer func() {
		if !done {
			go q.write()
		}
	}()
	for {
		l, ok := q.next()
		if !ok {
			done = true
			return
		}
		if l.to.Enabled(l.ctx, l.record.Level) {
			_ = l.to.Handle(l.ctx, l.record)
		}
	}
}

// noteDropped puts a line about the dropped lines into the queue, in their place.
func (q *Queue) noteDropped() {
	if q.dropped == 0 {
		return
	}
	const text = "lines were dropped because the log is slow"
	note := q.last
	note.record = slog.NewRecord(note.record.Time, slog.LevelWarn, text, 0)
	note.record.AddAttrs(slog.Int("dropped", q.dropped))
	q.lines = append(q.lines, note)
	q.dropped, q.last = 0, queuedLine{}
}

// next takes the first line.
func (q *Queue) next() (queuedLine, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.lines) == 0 {
		q.noteDropped()
	}
	if len(q.lines) == 0 {
		q.writing, q.lines = false, nil
		close(q.idle)
		return queuedLine{}, false
	}
	first := q.lines[0]
	q.lines = q.lines[1:]
	return first, true
}

// Flush waits until all lines are written, but no longer than d.
func (q *Queue) Flush(d time.Duration) {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-idle:
	case <-limit.C:
	}
}
