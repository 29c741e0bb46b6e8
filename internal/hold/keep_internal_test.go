package hold

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/internal/watches"
	"github.com/turnstile-go/turnstile/kinds"
)

func seen(event core.WatchEvent) *core.Watch { return watches.Seen(nil, nil, event) }

// What a tenure says of a place, at each time and with each reason to end it.
func TestTenure(t *testing.T) {
	now := time.Now()
	fit := func() *tenure {
		k := &tenure{watch: seen(core.WatchPending), since: now, timeout: 10 * time.Second, fit: true}
		k.keepFor(now, 3*time.Second)
		return k
	}
	for _, c := range []struct {
		what                string
		change              func(*tenure)
		later               time.Duration
		undisturbed, usable bool
	}{
		{"a new place", func(*tenure) {}, 0, true, true},
		{"just before its time is over", func(*tenure) {}, 3*time.Second - 1, true, true},
		{"its time is over", func(*tenure) {}, 3 * time.Second, true, false},
		{"used again after half a timeout", func(k *tenure) { k.keepFor(now.Add(5*time.Second), 3*time.Second) }, 7 * time.Second, true, true},
		{"after a timeout", func(k *tenure) { k.keepFor(now.Add(9*time.Second), 3*time.Second) }, 10 * time.Second, false, true},
		{"kept for long", func(k *tenure) { k.keepFor(now, time.Minute) }, 10 * time.Second, false, false},
		{"somebody came", func(k *tenure) { k.watch = seen(core.WatchChanged) }, 0, false, false},
		{"the connection was lost", func(k *tenure) { k.watch = seen(core.WatchBroken) }, 0, false, false},
		{"no watch", func(k *tenure) { k.watch = nil }, 0, false, false},
		{"revoked", func(k *tenure) { k.last = true }, 0, false, false},
		{"not to be kept", func(k *tenure) { k.fit = false }, 0, false, false},
	} {
		k := fit()
		c.change(k)
		at := now.Add(c.later)
		if got := k.undisturbed(at); got != c.undisturbed {
			t.Errorf("%s: undisturbed %v", c.what, got)
		}
		if got := k.usable(at); got != c.usable {
			t.Errorf("%s: usable %v", c.what, got)
		}
	}
}

// The more places in a row are taken away before they are used again, the fewer are kept. One that was of
// use ends that.
func TestHabit(t *testing.T) {
	var h habit
	for _, want := range []int{1, 2, 4, 8, 16, 32, 64, 64} {
		if !h.next() {
			t.Fatalf("not kept: %+v", h)
		}
		h.takenAway(false)
		for i := range want {
			if h.next() {
				t.Fatalf("kept after %d of %d", i, want)
			}
		}
	}
	if !h.next() {
		t.Fatalf("not kept: %+v", h)
	}
	h.takenAway(true)
	if h != (habit{}) {
		t.Errorf("%+v", h)
	}
}

// readKind is the readers' kind of a read-write lock.
var readKind = &kinds.Kind{Name: "rw", Prefixes: []string{kinds.PrefixRead, kinds.PrefixWrite}, Policy: decide.ReadWrite}
