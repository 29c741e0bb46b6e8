package election_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/session"
)

// starter is the part of controller-runtime's manager.Manager that is needed here. newManager of a program makes one:
//
//	func newManager() (starter, error) {
//		m, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
//			LeaderElection: false, // Run elects
//			Controller:     config.Controller{SkipNameValidation: ptr.To(true)}, // the next term has the same names
//		})
//		if err != nil {
//			return nil, err
//		}
//		return m, addControllers(m)
//	}
type starter interface {
	Start(ctx context.Context) error
}

// errManager says that a manager has failed, or has not stopped all that it has started.
var errManager = errors.New("manager")

// runControllers runs controllers while this process leads. It returns when ctx ends, or when the process should end.
func runControllers(ctx context.Context, m *session.Manager, path string, newManager func() (starter, error)) error {
	e, err := election.New(m, path, election.WithTermEnd(func(err error) error {
		if errors.Is(err, election.ErrResigned) && !errors.Is(err, errManager) {
			return nil // all has stopped in order
		}
		return err
	}))
	if err != nil {
		return err
	}
	return e.Run(ctx, func(ctx context.Context) error {
		manager, err := newManager() // one cannot be started twice
		if err != nil {
			return fmt.Errorf("%w: %w", errManager, err)
		}
		if err := manager.Start(ctx); err != nil { // it returns nil if it has stopped because ctx has ended
			return fmt.Errorf("%w: %w", errManager, err)
		}
		return nil
	})
}
