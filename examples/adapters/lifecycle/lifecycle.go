// Package lifecycle runs a candidate of an election as a part of a program that golang.org/x/sync/errgroup,
// github.com/oklog/run, go.uber.org/fx or the services of github.com/grafana/dskit begin and end. Other work under a lock
// fits in the same way.
//
// All four carry a loss: the context of lead ends, and the candidate campaigns again, which the rest of the program does not
// see. With the option election.WithTermEnd a loss can end the part instead, and with it the program. All four end the part
// by a context, and wait until it has returned, so the leadership is given up before the next step. What they do not do is
// to end lead if it does not look at its context: fx goes on without it after a while, and the others wait.
//
// Close the session manager after the part has ended: in fx and dskit that is an order between parts, as each function says.
package lifecycle

import (
	"context"

	"github.com/grafana/dskit/services"
	"go.uber.org/fx"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/election"
)

// Errgroup has a goroutine of the group campaign and lead until ctx ends, which is that of errgroup.WithContext. If another
// goroutine fails, ctx ends, and so does the term. Close the manager after g.Wait.
func Errgroup(ctx context.Context, g *errgroup.Group, e *election.Election, lead func(context.Context) error) {
	g.Go(func() error { return e.Run(ctx, lead) })
}

// Actor is for Add of a run.Group. Close the manager after Run of the group, and not in an interrupt function: the group
// calls all of these before any actor has ended.
func Actor(e *election.Election, lead func(context.Context) error) (execute func() error, interrupt func(error)) {
	ctx, cancel := context.WithCancel(context.Background())
	return func() error { return e.Run(ctx, lead) }, func(error) { cancel() }
}

// Hook is for Append of an fx.Lifecycle. If the candidate or lead fails, the application shuts down with exit code 1, and
// its Stop returns the error.
//
// The constructor of the manager appends a hook that closes it: fx stops in the opposite order, so that hook runs after
// this one. If lead does not return within the StopTimeout of the application, 15 s by default, fx goes on with that, and
// another candidate can lead while lead is at work.
func Hook(e *election.Election, lead func(context.Context) error, app fx.Shutdowner) fx.Hook {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	run := func() {
		err := e.Run(ctx, lead)
		if ended <- err; err != nil {
			_ = app.Shutdown(fx.ExitCode(1)) // it fails if the application has ended
		}
	}
	return fx.Hook{
		OnStart: func(context.Context) error { go run(); return nil }, // that context ends when the start is over
		OnStop: func(stop context.Context) error {
			cancel()
			select {
			case err := <-ended:
				return err
			case <-stop.Done():
				return context.Cause(stop)
			}
		},
	}
}

// Service is a service of dskit. A failure of the candidate or of lead is the FailureCase of the service. services.Manager
// stops all services at once: close the session manager when they are stopped, in no service of its own.
func Service(e *election.Election, lead func(context.Context) error) services.Service {
	return services.NewBasicService(nil, func(ctx context.Context) error { return e.Run(ctx, lead) }, nil)
}
