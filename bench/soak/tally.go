package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// tally counts events by name.
type tally struct {
	mu       sync.Mutex
	ops      map[string]int
	outcomes map[string]int
	faults   map[string]int
}

func newTally() *tally {
	return &tally{ops: make(map[string]int), outcomes: make(map[string]int), faults: make(map[string]int)}
}

// outcome counts how a use of a lock has ended, and reports whether it may end so.
func (t *tally) outcome(what string, err error) bool {
	result, allowed := classify(err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ops[what]++
	t.outcomes[result]++
	return allowed
}

// classify says what an error means, and whether faults and deadlines explain it.
func classify(err error) (string, bool) {
	switch {
	case err == nil:
		return "done", true
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "given up", true
	case errors.Is(err, errLimited):
		return "more than there is", true
	case errors.Is(err, queue.ErrBusy):
		return "busy", true
	case errors.Is(err, queue.ErrRevoked):
		return "asked for", true
	case errors.Is(err, session.ErrLost):
		return "lost", true
	case errors.Is(err, queue.ErrReleasePending):
		return "release not yet confirmed", true
	case errors.Is(err, session.ErrClosed):
		return "closed", true
	}
	return "error", false
}

func (t *tally) fault(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults[name]++
}

// list returns counts as "12 a, 3 b", by name.
func (t *tally) list(counts map[string]int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}

func (t *tally) total(counts map[string]int) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range counts {
		n += c
	}
	return n
}
