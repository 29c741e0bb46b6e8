package cli

import (
	"bytes"
	"io"
	"time"
)

// laterWriter is a writer that never blocks: a goroutine writes to the writer below it. Lines are dropped
// while too many wait. Run writes its log so. If nobody reads the standard error, a write
// to it blocks, and run has a lock to look after.
type laterWriter struct {
	lines chan []byte // nil is the last
	done  chan struct{}
}

func newLaterWriter(to io.Writer) *laterWriter {
	w := &laterWriter{lines: make(chan []byte, 256), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for line := range w.lines {
			if line == nil {
				return
			}
			_, _ = to.Write(line)
		}
	}()
	return w
}

// Write queues a line, or drops it. It is safe for concurrent use.
func (w *laterWriter) Write(line []byte) (int, error) {
	select {
	case w.lines <- bytes.Clone(line):
	default:
	}
	return len(line), nil
}

// close waits until all lines are written, for a second at most.
func (w *laterWriter) close() {
	late := time.After(time.Second)
	select {
	case w.lines <- nil:
	case <-late:
		return
	}
	select {
	case <-w.done:
	case <-late:
	}
}
