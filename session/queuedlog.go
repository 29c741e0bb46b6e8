package session

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// queuedLog is a slog.Handler that hands lines on to the user's handler in a goroutine of its own. The
// user's handler can be slow, hang or end its goroutine, and none of that may delay a lock, a dial or a
// delete. There is a goroutine only while there are lines to write.
type queuedLog struct {
	to slog.Handler
	q  *logQueue
}

// newQueuedLog returns a logger whose calls do not block.
func newQueuedLog(log *slog.Logger) (*slog.Logger, *logQueue) {
	q := &logQueue{idle: make(chan struct{})}
	close(q.idle)
	return slog.New(queuedLog{log.Handler(), q}), q
}

// Enabled does not ask the user's handler, which is asked in the goroutine.
func (h queuedLog) Enabled(context.Context, slog.Level) bool { return true }

func (h queuedLog) Handle(ctx context.Context, r slog.Record) error {
	h.q.put(queuedLine{context.WithoutCancel(ctx), h.to, r.Clone()})
	return nil
}

func (h queuedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return queuedLog{h.to.WithAttrs(attrs), h.q}
}

func (h queuedLog) WithGroup(name string) slog.Handler { return queuedLog{h.to.WithGroup(name), h.q} }

// logQueue has the lines that are not written yet.
type logQueue struct {
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

func (q *logQueue) put(l queuedLine) {
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
func (q *logQueue) write() {
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
func (q *logQueue) noteDropped() {
	if q.dropped == 0 {
		return
	}
	note := q.last
	note.record = slog.NewRecord(note.record.Time, slog.LevelWarn, "lines were dropped because the log is slow", 0)
	note.record.AddAttrs(slog.Int("dropped", q.dropped))
	q.lines = append(q.lines, note)
	q.dropped, q.last = 0, queuedLine{}
}

// next takes the first line.
func (q *logQueue) next() (queuedLine, bool) {
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

// flush waits until all lines are written, but no longer than d.
func (q *logQueue) flush(d time.Duration) {
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
