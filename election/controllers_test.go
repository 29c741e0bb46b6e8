package election_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
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
	crash := errors.New("crash")
	for name, tt := range map[string]struct {
		end  func(t *testing.T, server *zktest.Server, m *session.Manager, of *fakeManager)
		want error
	}{
		"loss": {func(t *testing.T, server *zktest.Server, m *session.Manager, _ *fakeManager) {
			must(t, server.Expire(t.Context(), testserver.Session(t, m).ID()))
		}, session.ErrLost},
		"failure": {func(_ *testing.T, _ *zktest.Server, _ *session.Manager, of *fakeManager) { of.fails <- crash }, crash},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *zktest.Server, connect func() *session.Manager) {
				m := connect()
				var made []*fakeManager
				ended := make(chan error, 1)
				go func() {
					ended <- runControllers(t.Context(), m, dir, func() (starter, error) {
						made = append(made, &fakeManager{fails: make(chan error)})
						return made[len(made)-1], nil
					})
				}()
				synctest.Wait()
				leader, err := newElection(t, connect(), dir).Leader(t.Context())
				must(t, err)
				must(t, zklock.Revoke(t.Context(), connect(), leader.Path))
				pass(time.Minute)
				if len(made) != 2 {
					t.Fatalf("%d managers in two terms", len(made))
				}
				tt.end(t, server, m, made[1])
				err = <-ended
				wantErr(t, "runControllers", err, tt.want)
				if errors.Is(err, election.ErrResigned) {
					t.Error(err)
				}
			})
		})
	}
}
