// Package loglines keeps the lines of a log for tests in bubbles of testing/synctest.
package loglines

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Recorder is a log handler that keeps what operators see: the lines from level information on.
type Recorder struct {
	slog.Handler
	mu    sync.Mutex
	lines []Line
}

// Line is a line. Its text is in the format of slog.TextHandler, without the time.
type Line struct {
	At    time.Time
	Level slog.Level
	Text  string
}

// New returns a recorder without lines.
func New() *Recorder { return &Recorder{Handler: slog.DiscardHandler} }

// Enabled implements slog.Handler.
func (r *Recorder) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle implements slog.Handler.
func (r *Recorder) Handle(ctx context.Context, rec slog.Record) error {
	var b strings.Builder
	at := rec.Time
	rec.Time = time.Time{}
	if err := slog.NewTextHandler(&b, nil).Handle(ctx, rec); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, Line{at, rec.Level, strings.TrimSuffix(b.String(), "\n")})
	return nil
}

// All returns the lines so far. It must be called in a bubble of synctest.
func (r *Recorder) All() []Line {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Line(nil), r.lines...)
}

// With returns the lines that contain a text.
func (r *Recorder) With(text string) (out []Line) {
	for _, l := range r.All() {
		if strings.Contains(l.Text, text) {
			out = append(out, l)
		}
	}
	return out
}

// Show logs the lines for people who look at the test.
func (r *Recorder) Show(t *testing.T, start time.Time) {
	t.Helper()
	for _, l := range r.All() {
		t.Logf("%8.3fs %s", l.At.Sub(start).Seconds(), l.Text)
	}
}
