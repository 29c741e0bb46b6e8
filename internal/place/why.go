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
	if shown := a.entry.Shown; shown != nil {
		shown.view.Store(v)
	}
}

// viewOf returns the view of an attempt of a fair kind that begins to wait.
func (a *attempt) viewOf(targets []decide.Blocker, watches []*core.Watch, ahead *decide.Tail) *view {
	v := &view{
		dir: a.q.dir, me: &a.node, targets: targets, watches: watches, beyond: ahead.Beyond, head: ahead.Head(), session: a.s.ID(),
		counted: a.policy.Tightened == 0, plain: a.plain(), own: a.own, known: a.entered,
	}
	if a.node.Prefix == kinds.PrefixLease {
		v.limit = a.policy.Slack + a.node.Weight
	}
	return v
}

// explain says in the error of an attempt that ended by its context why it had to wait.
func (a *attempt) explain(ctx context.Context, err error) error {
	return because(ctx, err, func() kinds.WaitError { return a.q.why(a.view, time.Now()) })
}

// because returns an error as a WaitError, if it is the end of ctx and is none yet.
func because(ctx context.Context, err error, why func() kinds.WaitError) error {
	var wait *kinds.WaitError
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) || errors.As(err, &wait) {
		return err
	}
	out := why()
	out.Err = err
	return &out
}

// why returns the reason for which an attempt has to wait. v is nil if nothing is known of others.
func (q *Queue) why(v *view, now time.Time) (out kinds.WaitError) {
	if q.m.State() != hooks.Connected {
		if out.Connection = q.m.Failure(); out.Connection == nil {
			out.Connection = errNotConnected
			out.Reason = errNotConnected.Error()
		} else {
			out.Reason = fmt.Sprintf("%v: %v", errNotConnected, out.Connection)
		}
		return out
	}
	if v != nil {
		out = v.reason(now)
	}
	if out.Connection = q.m.Silence(); out.Connection == nil {
		return out
	}
	if out.Reason != "" {
		out.Reason = "; " + out.Reason
	}
	out.Reason = out.Connection.Error() + out.Reason
	return out
}

// errNotConnected says that there is no connection to a server, for a reason that is not known.
var errNotConnected = errors.New("not connected")
