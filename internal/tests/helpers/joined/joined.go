// Package joined counts the requests of a manager that are sent together with those of other callers.
package joined

import (
	"context"
	"sync/atomic"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/session"
)

// Counter counts creates and deletes that have ended. All methods may be called by any number of goroutines at once.
type Counter struct{ all, joined atomic.Int64 }

// Hooks are those of the manager.
func (c *Counter) Hooks() session.Trace {
	return session.Trace{Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
		if r.Op != "create" && r.Op != "delete" {
			return ctx, nil
		}
		return ctx, func(error) {
			c.all.Add(1)
			if r.Batch() != 0 {
				c.joined.Add(1)
			}
		}
	}}
}

// Joined returns how many were sent with others.
func (c *Counter) Joined() int64 { return c.joined.Load() }

// None reports whether none was sent with others, although there were so many that some of a busy manager must have been.
func (c *Counter) None() bool { return c.all.Load() > many && c.joined.Load() == 0 }

const many = 500

// Always has a manager send creates and deletes together that come while a request is under way, as one does that waits for
// slow answers.
func Always(m *session.Manager) { (*core.Manager)(m).SetWindow(1) }
