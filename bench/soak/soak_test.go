package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// One cycle leaves nothing, and its table and picture can be made.
func TestOneCycle(t *testing.T) {
	const length = loadPhase // a cycle is longer, and the beginning shorter, also on a busy machine
	s, err := newSoak(length, 1)
	if errors.Is(err, zktest.ErrNoZooKeeper) {
		testserver.Missing(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.run(context.Background(), length, func(line string) { t.Log(line) }); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := s.referee.Result(); n == 0 || len(s.settled) != 1 {
		t.Errorf("%d holds, %d cycles", n, len(s.settled))
	}
	text := s.table()
	for _, f := range figures {
		if !strings.Contains(text, "| "+f.name+" |") {
			t.Errorf("no row for %s in\n%s", f.name, text)
		}
	}
	png := filepath.Join(t.TempDir(), "soak.png")
	if err := s.draw(png); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(png); err != nil {
		t.Error(err)
	}
}

func TestRefuses(t *testing.T) {
	if err := soakFor(0, 1, false); err == nil {
		t.Error("no time at all: no error")
	}
}
