package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestThreeAtATime(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, testserver.Server(t).ConnectString()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2*workers+1 || !strings.HasPrefix(lines[2*workers], "10 workers were inside, at most ") {
		t.Errorf("it says\n%s", out.String())
	}
	for _, line := range lines[:len(lines)-1] {
		if n := strings.Count(line, "·"); n < workers-places {
			t.Errorf("%d inside: %s", workers-n, line)
		}
	}
	testserver.WaitChildren(t, poolPath, 0)
}

// TestInterrupted is Ctrl-C before anybody is inside.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, new(bytes.Buffer), testserver.Server(t).ConnectString()); err == nil {
		t.Error("an interrupted run reports success")
	}
	testserver.WaitChildren(t, poolPath, 0)
}
