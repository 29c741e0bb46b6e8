package main

import (
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// A fiftieth of the load works, and leaves nothing.
func TestSmall(t *testing.T) {
	for _, isFleet := range []bool{false, true} {
		err := run(2, isFleet, false, 5*time.Minute)
		if errors.Is(err, zktest.ErrNoZooKeeper) {
			testserver.Missing(t, err)
		}
		if err != nil {
			t.Fatalf("fleet %v: %v", isFleet, err)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, scale := range []int{-1, 0, 101} {
		if err := run(scale, false, false, time.Minute); err == nil {
			t.Errorf("-scale %d: no error", scale)
		}
	}
}

func TestTable(t *testing.T) {
	one := table{title: "a"}
	one.row("b", "%d", 1)
	if got, want := one.String(), "| a | |\n|---|---:|\n| b | 1 |\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
