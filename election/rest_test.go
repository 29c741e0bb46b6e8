package election_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// longestRest is half of the session timeout of inBubble.
const longestRest = 5 * time.Second

// A candidate whose function fails at once rests before it stands again, longer each time, although another candidate leads
// for long in between. After a term that lasted it begins with short rests again.
func TestRest(t *testing.T) {
	const rounds = 30
	for _, how := range []string{"in one Run", "in a Run for each term"} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *zktest.Server, connect func() *session.Manager) {
				var stood []time.Time // when the candidate began to campaign
				m := connect()
				m.AddTrace(session.Trace{Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
					stood = append(stood, time.Now())
					return ctx, nil
				}})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error)
				go func() { // a healthy candidate, which leads for a while each time
					ended <- newElection(t, connect(), dir).Run(ctx, func(ctx context.Context) error {
						select {
						case <-time.After(12 * time.Second):
						case <-ctx.Done():
						}
						return nil
					})
				}()
				pass(time.Second)
				var opts []election.Option
				if how == "in one Run" {
					opts = []election.Option{election.WithTermEnd(func(error) error { return nil })}
				}
				e := newElection(t, m, dir, opts...)
				var failed []time.Time
				lead := func(ctx context.Context) error {
					failed = append(failed, time.Now())
					if len(failed) == rounds {
						time.Sleep(11 * time.Second) // it can lead for once
						failed[rounds-1] = time.Now()
					}
					if len(failed) == rounds+2 {
						cancel()
					}
					return errWork
				}
				var err error
				for ctx.Err() == nil {
					err = e.Run(ctx, lead)
				}
				must(t, <-ended)
				if len(failed) < rounds+2 {
					t.Fatalf("%d terms, and then %v", len(failed), err)
				}
				rest := func(i int) time.Duration { return stood[i+1].Sub(failed[i]) }
				longest := time.Duration(0)
				for i := range rounds - 1 {
					if bound := min(longestRest, 50*time.Millisecond<<min(i, 10)); rest(i) > bound+10*time.Millisecond {
						t.Errorf("rest %d took %v, and should take %v at most", i, rest(i), bound)
					}
					longest = max(longest, rest(i))
				}
				if longest < 2*time.Second {
					t.Errorf("no rest took longer than %v", longest)
				}
				if first := rest(rounds); first > 60*time.Millisecond {
					t.Errorf("after a term that lasted, the first rest took %v", first)
				}
			})
		})
	}
}
