package election_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A shutdown that was asked for is no error, wherever the candidate is: the context of Run is cancelled, or the manager is
// closed. An error of the leader's function is one.
func TestShutdown(t *testing.T) {
	asks := map[string]func(*session.Manager, context.CancelFunc){
		"cancelled": func(_ *session.Manager, cancel context.CancelFunc) { cancel() },
		"closed":    func(m *session.Manager, _ context.CancelFunc) { _ = m.Close() },
	}
	type ending struct {
		lead func(context.Context) error
		want []error
	}
	endings := map[string]ending{
		"nil":                     {func(context.Context) error { return nil }, nil},
		"the end of its context":  {func(ctx context.Context) error { return fmt.Errorf("bill: %w", ctx.Err()) }, nil},
		"the cause of its end":    {func(ctx context.Context) error { return context.Cause(ctx) }, nil},
		"an error":                {func(context.Context) error { return errWork }, []error{errWork}},
		"an error beside its end": {func(ctx context.Context) error { return errors.Join(ctx.Err(), errWork) }, []error{errWork}},
	}
	for how, ask := range asks {
		end := map[string]error{"cancelled": context.Canceled, "closed": session.ErrClosed}[how]
		for what, c := range endings {
			for _, opts := range [][]election.Option{nil, {election.WithTermEnd(func(err error) error { return err })}} {
				inBubble(t, func(t *testing.T, _ *zktest.Server, connect func() *session.Manager) {
					m := connect()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					err := newElection(t, m, dir, opts...).Run(ctx, func(ctx context.Context) error {
						ask(m, cancel)
						<-ctx.Done()
						return c.lead(ctx)
					})
					switch {
					case c.want == nil && err != nil:
						t.Errorf("%s, and its function returns %s: Run returns %v", how, what, err)
					case c.want != nil:
						wantErr(t, how+", and its function returns "+what, err, append(c.want, end)...)
					}
				})
			}
		}
		inBubble(t, func(t *testing.T, _ *zktest.Server, connect func() *session.Manager) { // in the queue
			leader, m, ended := newElection(t, connect(), dir), connect(), make(chan error)
			leading, resign := context.WithCancel(t.Context())
			go func() { ended <- leader.Run(leading, func(ctx context.Context) error { <-ctx.Done(); return nil }) }()
			pass(time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				ended <- newElection(t, m, dir).Run(ctx, func(context.Context) error { t.Error("it leads"); return nil })
			}()
			pass(time.Second)
			ask(m, cancel)
			must(t, <-ended)
			resign()
			must(t, <-ended)
		})
		for what, work := range map[string]error{"rests": errWork, "paces short terms": nil} {
			inBubble(t, func(t *testing.T, _ *zktest.Server, connect func() *session.Manager) {
				m, ended := connect(), make(chan error)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				e := newElection(t, m, dir, election.WithTermEnd(func(error) error { return nil }))
				go func() { ended <- e.Run(ctx, func(context.Context) error { return work }) }()
				pass(time.Minute)
				ask(m, cancel)
				start := time.Now()
				must(t, <-ended)
				if took := time.Since(start); took > 0 {
					t.Errorf("%s while it %s: Run returns after %v", how, what, took)
				}
			})
		}
	}
}

// The end of a deadline is no shutdown, and neither is a Run whose manager was closed before.
func TestNoShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func() *session.Manager) {
		m := connect()
		e := newElection(t, m, dir)
		for _, lead := range []func(context.Context) error{
			func(ctx context.Context) error { <-ctx.Done(); return nil },
			func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			wantErr(t, "a deadline", e.Run(ctx, lead), context.DeadlineExceeded)
		}
		must(t, m.Close())
		wantErr(t, "a closed manager", e.Run(t.Context(), func(context.Context) error { return nil }), session.ErrClosed)
	})
}
