package core

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/room"
)

// The path of a node counts with the chroot.
func TestRoomCountsWholePaths(t *testing.T) {
	cfg := newFakeConfig(t)
	cfg.chroot = "/app"
	if got, want := bareSession(t, cfg).sizeOf("/d/n-", true), room.SizeOf("/app/d/n-", true); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}
