package cli

import (
	"io"
	"sync"
	"time"
)

// laterWriter is a writer that never blocks: a goroutine writes to the writer below it. Lines are dropped
// while too many wait. Run writes its log so. If nobody reads the standard error, a write
// to it blocks, and run has a lock to look after.
type laterWriter struct {
	mu     sync.Mutex
	lines  chan []byte
	closed bool
	done   chan struct{} // closed when all lines are written
}

const (
	laterLines = 256
	laterTime  = time.Second // how long close waits for the last lines
)

func newLaterWriter(to io.Writer) *laterWriter {
	w := &laterWriter{lines: make(chan []byte, laterLines), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for line := range w.lines {
			_, _ = to.Write(line)
		}
	}()
	return w
}

// Write queues a line, or drops it. It is safe for concurrent use.
func (w *laterWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return len(line), nil
	}
	select {
	case w.lines <- append([]byte(nil), line...):
	default:
	}
	return len(line), nil
}

// close waits until all lines are written, for a second at most.
func (w *laterWriter) close() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.lines)
	}
	w.mu.Unlock()
	select {
	case <-w.done:
	case <-time.After(laterTime):
	}
}
