package election_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// Hooks can tell a leader, which holds for weeks, from a mutex that hangs.
func TestKind(t *testing.T) {
	for name, opts := range map[string][]election.Option{"selector": nil, "latch": {election.WithLeaderLatch()}} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			kinds := make(map[string]int)
			count := func(kind string) {
				mu.Lock()
				defer mu.Unlock()
				kinds[kind]++
			}
			m := connect(t, session.WithTrace(session.Trace{
				Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
					count("acquires " + a.Kind)
					return ctx, nil
				},
				Hold: func(_ context.Context, h session.HoldInfo) func(error) {
					count("holds " + h.Kind)
					return nil
				},
			}))
			enough := errors.New("enough")
			e := newElection(t, m, testserver.Path(t), opts...)
			if err := e.Run(patient(t), func(context.Context) error { return enough }); !errors.Is(err, enough) {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(kinds) != 2 || kinds["acquires election"] != 1 || kinds["holds election"] != 1 {
				t.Errorf("hooks saw %v", kinds)
			}
		})
	}
}
