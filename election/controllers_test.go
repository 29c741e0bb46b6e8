package election_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// fakeManager does what controller-runtime's manager does with its context.
type fakeManager struct {
	started bool
	fails   chan error
}

func (m *fakeManager) Start(ctx context.Context) error {
	if m.started {
		return errors.New("started twice")
	}
	m.started = true
	select {
	case <-ctx.Done():
		return nil
	case err := <-m.fails:
		return err
	}
}

// Each term has a manager of its own. After one that was resigned the process goes on, and after a loss or a failure
// it ends.
func TestControllers(t *testing.T) {
	for _, want := range []error{session.ErrLost, errWork} {
		inBubble(t, func(t *world) {
			m := t.connect()
			var made []*fakeManager
			ended := make(chan error, 1)
			go func() {
				ended <- runControllers(t.Context(), m, dir, func() (starter, error) {
					made = append(made, &fakeManager{fails: make(chan error)})
					return made[len(made)-1], nil
				})
			}()
			pass(soon)
			leader, err := t.election().Leader(t.Context())
			must(t, err)
			must(t, zklock.Revoke(t.Context(), m, leader.Path))
			pass(time.Minute)
			if len(made) != 2 {
				t.Fatalf("%d managers in two terms", len(made))
			}
			if errors.Is(want, errWork) {
				made[1].fails <- errWork
			} else {
				t.expire(m)
			}
			err = <-ended
			if wantErr(t, "runControllers", err, want); errors.Is(err, election.ErrResigned) {
				t.Error(err)
			}
		})
	}
}
