package hold

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/session"
)

// log returns the logger of the lock's first manager.
func (h *Holds[L]) log() *slog.Logger {
	if len(h.managers) == 0 {
		return slog.Default()
	}
	return (*core.Manager)(h.managers[0]).Logger()
}

// closed reports whether one of the managers is closed.
func (h *Holds[L]) closed() bool {
	return slices.ContainsFunc(h.managers, func(m *session.Manager) bool { return m.State() == session.Closed })
}

// closing returns a channel that is closed as soon as one of the managers is. The caller must
// call stop when done with it.
func (h *Holds[L]) closing() (closed <-chan struct{}, stop func()) {
	ch := make(chan struct{})
	tell := sync.OnceFunc(func() { close(ch) })
	var stops []func()
	for _, m := range h.managers {
		stops = append(stops, m.Subscribe(func(c session.Change) {
			if c.To == session.Closed {
				tell()
			}
		}))
	}
	return ch, func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// pause waits for d and returns true. It returns false as soon as a manager is closed.
func (h *Holds[L]) pause(d time.Duration) bool {
	closed, stop := h.closing()
	defer stop()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-closed:
		return false
	}
}
