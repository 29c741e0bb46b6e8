package place

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/kinds"
)

// show keeps what the attempt knows now, for the error of a wait that ends by its context.
func (a *attempt) show(v *view) {
	a.view = v
	if a.entry.view != nil {
		a.entry.view.Store(v)
	}
}

// viewOf returns the view of an attempt of a fair kind that begins to wait.
func (a *attempt) viewOf(targets []decide.Blocker, watches []*core.Watch, ahead *decide.Tail) *view {
	v := &view{
		me: &a.node, targets: targets, watches: watches, beyond: ahead.Beyond, head: ahead.Head(), session: a.s.ID(),
		counted: a.policy.Tightened == 0, plain: a.plain(), own: a.own, known: a.entered,
	}
	if a.node.Prefix == kinds.PrefixLease {
		v.limit = a.policy.Slack + a.node.Weight
	}
	return v
}

// explain adds to the error of an attempt that ended by its context why it had to wait.
func (a *attempt) explain(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	return because(err, a.q.why(a.view, time.Now()))
}

// why returns the reason for which an attempt has to wait, or "" if it is not known.
func (q *Queue) why(v *view, now time.Time) string {
	if q.m.State() != hooks.Connected {
		if failure := q.m.Failure(); failure != nil {
			return fmt.Sprintf("not connected: %v", failure)
		}
		return "not connected"
	}
	silence, text := q.m.Silence(), ""
	if v != nil {
		text = v.text(now)
	}
	switch {
	case silence == nil:
		return text
	case text == "":
		return silence.Error()
	}
	return silence.Error() + "; " + text
}
