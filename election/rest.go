package election

import (
	"context"
	"time"

	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
)

// enough is how long a term lasts whose leader could lead.
const enough = 10 * time.Second

// rest keeps a candidate that cannot lead out of the queue for a while, longer each time. Otherwise the candidates that can
// lead would have to wait for it again and again. Only the one Run that an Election can have at a time uses it.
type rest struct {
	waits rounds.Backoff
	until time.Time
}

// after decides how long the candidate rests after a term.
func (r *rest) after(t *term, m *session.Manager) {
	if r.waits.Most == 0 {
		r.waits = rounds.NewPace(m.Backoff()).Backoff
	}
	switch {
	case t.lasted >= enough:
		r.waits.Reset()
	case t.worked != nil && !t.cut():
		r.until = time.Now().Add(r.waits.Next())
	}
}

// wait rests until the candidate may stand again, or the manager is closed. It fails if ctx ends.
func (r *rest) wait(ctx context.Context, m *session.Manager) error {
	d := time.Until(r.until)
	if d <= 0 {
		return nil
	}
	return rounds.Until(ctx, m.Done(), d)
}
