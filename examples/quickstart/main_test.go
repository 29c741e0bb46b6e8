package main

import (
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/exampletest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func TestTenLinesInOrder(t *testing.T) {
	longtest.InCI(t)
	server := testserver.Server(t)
	var out exampletest.Buffer
	expect.NoError(t, run(t.Context(), &out, server.ConnectString()))
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

func TestRecord(t *testing.T) {
	if err := new(record).verdict(); err == nil {
		t.Error("no worker has entered, and the referee finds that right")
	}
}

func TestEnds(t *testing.T) { exampletest.Ends(t, lockPath, exampletest.ZK) }
