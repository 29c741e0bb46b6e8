package logbook

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// lineHandler calls f with each line.
type lineHandler func(text string)

func (lineHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (h lineHandler) Handle(_ context.Context, r slog.Record) error {
	h(r.Message)
	return nil
}
func (h lineHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h lineHandler) WithGroup(string) slog.Handler      { return h }

// A handler that hangs delays nobody, and the queue is bounded. Where lines were dropped, there is a line
// that says so.
func TestQueuedLogHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		var lines []string
		log, q := Queued(slog.New(lineHandler(func(text string) {
			<-goOn
			lines = append(lines, text)
		})))
		var want []string
		put := func(text string) {
			log.Info(text)
			want = append(want, text)
		}
		const dropped = "lines were dropped because the log is slow"
		put("line")
		synctest.Wait() // the handler has the first line
		for i := range maxQueued {
			put(fmt.Sprint("line ", i))
		}
		for range 3 * maxQueued {
			log.Info("no room")
		}
		began := time.Now()
		q.Flush(time.Second)
		if d := time.Since(began); d != time.Second {
			t.Errorf("Flush took %v of a handler that hangs, want 1s", d)
		}
		if n := q.waiting; n > maxQueued {
			t.Errorf("%d lines in the queue", n)
		}
		goOn <- struct{}{}
		synctest.Wait()
		want = append(want, dropped)
		put("there is room again")
		log.Info("no room")
		close(goOn)
		want = append(want, dropped)
		synctest.Wait()
		put("afterwards")
		q.Flush(time.Hour)
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("the lines written (-want +got):\n%s", diff)
		}
	})
}

// A handler that ends its goroutine, as t.FailNow does, loses its own line only. Lines below the
// handler's level are not written.
func TestQueuedLogGoexit(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	log, q := Queued(slog.New(lineHandler(func(text string) {
		if text == "end" {
			runtime.Goexit()
		}
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, text)
	})))
	for _, text := range []string{"one", "end", "two", "end"} {
		log.Info(text)
	}
	log.Debug("not written")
	log.Info("three")
	q.Flush(time.Minute)
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"one", "two", "three"}; !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
}
