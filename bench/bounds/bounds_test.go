package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// A short run has a row for each network, and leaves nothing.
func TestRows(t *testing.T) {
	var out strings.Builder
	if err := run(&out, "x", 400*time.Millisecond, 5, 0); errors.Is(err, zktest.ErrNoZooKeeper) {
		testserver.Missing(t, err)
	} else if err != nil {
		t.Fatal(err)
	}
	if err := run(&out, "x", time.Second, 5, 10); err != nil {
		t.Fatal(err)
	}
	for _, n := range networks {
		if !strings.Contains(out.String(), "| x | "+n.name+" |") {
			t.Errorf("no row for %s in\n%s", n.name, out.String())
		}
	}
	if !strings.Contains(out.String(), "10 goroutines on one lock") {
		t.Errorf("no burst in\n%s", out.String())
	}
}

func TestRefuses(t *testing.T) {
	if err := run(nil, "x", 0, 1, 0); err == nil {
		t.Error("no time at all: no error")
	}
}
