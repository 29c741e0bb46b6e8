package election_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/session"
)

// shutdowns are the ways to ask a candidate to end.
var shutdowns = map[string]struct {
	ask func(*session.Manager, context.CancelFunc)
	end error
}{
	"cancelled": {func(_ *session.Manager, cancel context.CancelFunc) { cancel() }, context.Canceled},
	"closed":    {func(m *session.Manager, _ context.CancelFunc) { _ = m.Close() }, session.ErrClosed},
}

// noParts is an error as types have it that collect others: it can wrap several, and wraps none.
type noParts struct{ error }

func (noParts) Unwrap() []error        { return nil }
func (n noParts) Is(target error) bool { return target == n.error }

// A shutdown that was asked for is no error. An error of the leader's function is one.
func TestShutdown(t *testing.T) {
	for how, down := range shutdowns {
		for what, c := range map[string]struct {
			lead func(context.Context) error
			want []error
		}{
			"nil":                     {func(context.Context) error { return nil }, nil},
			"the end of its context":  {func(ctx context.Context) error { return fmt.Errorf("bill: %w", ctx.Err()) }, nil},
			"the cause of its end":    {func(ctx context.Context) error { return context.Cause(ctx) }, nil},
			"an error":                {func(context.Context) error { return errWork }, []error{errWork, down.end}},
			"an error beside its end": {func(ctx context.Context) error { return errors.Join(ctx.Err(), errWork) }, []error{errWork, down.end}},
			"an error of no parts":    {func(context.Context) error { return noParts{errWork} }, []error{errWork, down.end}},
		} {
			for _, opts := range [][]election.Option{nil, {election.WithTermEnd(func(err error) error { return err })}} {
				inBubble(t, func(t *world) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					e := t.election(opts...)
					err := e.Run(ctx, func(ctx context.Context) error {
						down.ask(e.Manager(), cancel)
						<-ctx.Done()
						return c.lead(ctx)
					})
					if wantErr(t, how+", and its function returns "+what, err, c.want...); c.want == nil && err != nil {
						t.Errorf("%s, and its function returns %s: Run returns %v", how, what, err)
					}
				})
			}
		}
	}
}

// A candidate that waits ends at once too: in the queue, or between its terms.
func TestShutdownOfCandidate(t *testing.T) {
	again := election.WithTermEnd(func(error) error { return nil })
	for how, down := range shutdowns {
		for where, work := range map[string]error{"in the queue": nil, "at rest": errWork, "paced": nil} {
			t.Run(how+" "+where, func(t *testing.T) {
				inBubble(t, func(t *world) {
					if where == "in the queue" {
						t.campaign("leader")
					}
					e, ended := t.election(again), make(chan error)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					go func() { ended <- e.Run(ctx, func(context.Context) error { return work }) }()
					pass(time.Minute)
					down.ask(e.Manager(), cancel)
					start := time.Now()
					must(t, <-ended)
					if took := time.Since(start); took > 0 {
						t.Errorf("Run returns after %v", took)
					}
				})
			})
		}
	}
}

// The end of a deadline is no shutdown, and neither is a Run whose manager was closed before.
func TestNoShutdown(t *testing.T) {
	inBubble(t, func(t *world) {
		e := t.election()
		for _, lead := range []func(context.Context) error{rests, func(ctx context.Context) error { <-ctx.Done(); return nil }} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			wantErr(t, "a deadline", e.Run(ctx, lead), context.DeadlineExceeded)
			cancel()
		}
		must(t, e.Manager().Close())
		wantErr(t, "a closed manager", e.Run(t.Context(), rests), session.ErrClosed)
	})
}
