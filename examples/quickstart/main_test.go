package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// syncBuffer is a buffer that ten workers may write to.
type syncBuffer struct {
	mu     sync.Mutex
	b      bytes.Buffer
	onLine func(n int)
	lines  int
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines++
	if s.onLine != nil {
		s.onLine(s.lines)
	}
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestTenLinesInOrder(t *testing.T) {
	server := testserver.Server(t)
	var out syncBuffer
	if err := run(t.Context(), &out, server.ConnectString()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != workers+1 {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), workers+1, out.String())
	}
	for _, line := range lines[:workers] {
		if !strings.HasPrefix(line, "worker ") || !strings.Contains(line, "fencing token") {
			t.Errorf("not a worker's line: %q", line)
		}
	}
	if want := "10 workers in order of arrival, never two at once"; lines[workers] != want {
		t.Errorf("last line %q, want %q", lines[workers], want)
	}
	testserver.WaitChildren(t, lockPath, 0)
}

// TestInterrupted is Ctrl-C while the second worker is inside.
func TestInterrupted(t *testing.T) {
	server := testserver.Server(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := syncBuffer{onLine: func(n int) {
		if n == 2 {
			cancel()
		}
	}}
	if err := run(ctx, &out, server.ConnectString()); err == nil {
		t.Error("an interrupted run reports success")
	}
	testserver.WaitChildren(t, lockPath, 0)
}

func TestRecord(t *testing.T) {
	if err := new(record).verdict(); err == nil {
		t.Error("no worker has entered, and the referee finds that right")
	}
}

func TestSIGTERM(t *testing.T) {
	exampletest.Stops(t, lockPath, "-zk", testserver.Server(t).ConnectString())
}

func TestWrongServer(t *testing.T) { exampletest.WrongServer(t, exampletest.ZK) }
