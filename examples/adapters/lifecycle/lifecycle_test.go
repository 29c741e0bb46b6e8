package lifecycle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/grafana/dskit/services"
	"github.com/oklog/run"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/examples/adapters/internal/ensemble"
	"github.com/turnstile-go/turnstile/examples/adapters/lifecycle"
	"github.com/turnstile-go/turnstile/session"
)

func TestMain(m *testing.M) { ensemble.Main(m) }

// program is a running program with one candidate.
type program struct {
	stop func()       // as SIGTERM does
	wait func() error // until it has ended
}

// programs begin a program with each of the libraries.
var programs = map[string]func(t *testing.T, e *election.Election, lead func(context.Context) error) program{
	"errgroup": func(_ *testing.T, e *election.Election, lead func(context.Context) error) program {
		ctx, stop := context.WithCancel(context.Background())
		g, gctx := errgroup.WithContext(ctx)
		lifecycle.Errgroup(gctx, g, e, lead)
		return program{stop, func() error { defer stop(); return g.Wait() }}
	},
	"run": func(_ *testing.T, e *election.Election, lead func(context.Context) error) program {
		var g run.Group
		ctx, stop := context.WithCancel(context.Background())
		g.Add(func() error { <-ctx.Done(); return nil }, func(error) { stop() })
		g.Add(lifecycle.Actor(e, lead))
		ended := make(chan error, 1)
		go func() { ended <- g.Run() }()
		return program{stop, func() error { return <-ended }}
	},
	"fx": func(t *testing.T, e *election.Election, lead func(context.Context) error) program {
		var down fx.Shutdowner
		app := fxtest.New(t, fx.NopLogger, fx.Populate(&down), fx.Invoke(func(l fx.Lifecycle, s fx.Shutdowner) {
			l.Append(lifecycle.Hook(e, lead, s))
		}))
		app.RequireStart()
		return program{func() { _ = down.Shutdown() }, func() error { <-app.Wait(); return app.Stop(context.Background()) }}
	},
	"dskit": func(t *testing.T, e *election.Election, lead func(context.Context) error) program {
		s := lifecycle.Service(e, lead)
		ensemble.OK(t, services.StartAndAwaitRunning(context.Background(), s))
		return program{s.StopAsync, func() error {
			if err := s.AwaitTerminated(context.Background()); err != nil {
				return s.FailureCase()
			}
			return nil
		}}
	},
}

func candidate(t *testing.T, p *ensemble.Process) *election.Election {
	t.Helper()
	return ensemble.Must(election.New(p.Manager, "/lifecycle/"+t.Name()))
}

// After a loss the context of the term ends, the program goes on, and its candidate leads again. When the program stops, it
// has given the leadership up, and another process leads.
func TestLoss(t *testing.T) {
	for library, begin := range programs {
		t.Run(library, func(t *testing.T) {
			process := ensemble.Start(t)
			terms := make(chan context.Context)
			p := begin(t, candidate(t, process), func(ctx context.Context) error {
				terms <- ctx
				<-ctx.Done() // work that looks at its context
				return nil
			})
			first := ensemble.Wait(t, terms, "the candidate leads")
			process.Expire(t)
			ensemble.Wait(t, first.Done(), "the term ends")
			if cause := context.Cause(first); !errors.Is(cause, session.ErrLost) {
				t.Errorf("the term ends with %v", cause)
			}
			second := ensemble.Wait(t, terms, "the candidate leads again")
			p.stop()
			ensemble.OK(t, p.wait())
			ensemble.Wait(t, second.Done(), "the second term has ended")

			done := errors.New("done")
			err := candidate(t, ensemble.Start(t)).Run(t.Context(), func(context.Context) error { return done })
			if !errors.Is(err, done) {
				t.Errorf("another process: %v", err)
			}
		})
	}
}

// If the leader's work fails, so does the program.
func TestFailure(t *testing.T) {
	for library, begin := range programs {
		t.Run(library, func(t *testing.T) {
			failure := errors.New("disk full")
			p := begin(t, candidate(t, ensemble.Start(t)), func(context.Context) error { return failure })
			if err := p.wait(); !errors.Is(err, failure) {
				t.Errorf("the program ends with %v", err)
			}
		})
	}
}
