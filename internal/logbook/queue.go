package logbook

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/line"
)

// Queued returns a logger that hands its lines on to log in a goroutine of its own, and the queue in between.
// The handler of log is the user's. It can be slow, hang or end its goroutine, and none of that may delay a
// lock, a dial or a delete. There is a goroutine only while there are lines to write. The queue keeps the
// order of the lines. If it is full, it drops lines, and a line says how many.
func Queued(log *slog.Logger) (*slog.Logger, *Queue) {
	q := new(Queue)
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
	lines line.Errands // to write

	mu      sync.Mutex
	waiting int        // of lines
	dropped int        // lines for which there was no room since the last of lines
	last    queuedLine // the last of the dropped lines
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
	if q.waiting >= maxQueued {
		q.dropped, q.last = q.dropped+1, l
		return
	}
	q.noteDroppedLocked()
	q.addLocked(l)
}

func (q *Queue) addLocked(l queuedLine) {
	q.waiting++
	q.lines.Add(func() {
		q.taken()
		if l.to.Enabled(l.ctx, l.record.Level) {
			_ = l.to.Handle(l.ctx, l.record)
		}
	})
}

// noteDroppedLocked puts a line about the dropped lines into the queue, in their place.
func (q *Queue) noteDroppedLocked() {
	if q.dropped == 0 {
		return
	}
	const text = "lines were dropped because the log is slow"
	note := q.last
	note.record = slog.NewRecord(note.record.Time, slog.LevelWarn, text, 0)
	note.record.AddAttrs(slog.Int("dropped", q.dropped))
	q.dropped, q.last = 0, queuedLine{}
	q.addLocked(note)
}

// taken takes note that the first line is about to be written.
func (q *Queue) taken() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting--; q.waiting == 0 {
		q.noteDroppedLocked()
	}
}

// Flush waits until all lines are written, but no longer than d.
func (q *Queue) Flush(d time.Duration) {
	written := make(chan struct{})
	q.lines.Add(func() {
		q.lines.Add(func() { close(written) }) // behind a note about dropped lines, if that comes last
	})
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-written:
	case <-limit.C:
	}
}
