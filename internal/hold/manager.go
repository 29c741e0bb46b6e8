package hold

import (
	"log/slog"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/session"
)

// log returns the logger of the manager.
func (h *Holds[L]) log() *slog.Logger { return (*core.Manager)(h.manager).Logger() }

// closed reports whether the manager is closed.
func (h *Holds[L]) closed() bool { return h.manager != nil && h.manager.State() == session.Closed }

// closing returns a channel that is closed as soon as the manager is. The caller must call stop when
// done with it.
func (h *Holds[L]) closing() (closed <-chan struct{}, stop func()) {
	if h.manager == nil {
		return nil, func() {}
	}
	ch := make(chan struct{})
	tell := sync.OnceFunc(func() { close(ch) })
	return ch, h.manager.Subscribe(func(c session.Change) {
		if c.To == session.Closed {
			tell()
		}
	})
}

// pause waits for d and returns true. It returns false as soon as the manager is closed.
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
