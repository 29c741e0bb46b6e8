package election_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/session"
)

// A candidate whose function fails at once rests before it stands again, longer each time, although another candidate leads
// for long in between. After a term that lasted it begins with short rests again.
func TestRest(t *testing.T) {
	const rounds = 30
	for how, opts := range map[string][]election.Option{
		"in one Run": {election.WithTermEnd(func(error) error { return nil })}, "in a Run for each term": nil,
	} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *world) {
				var stood, failed []time.Time // when the candidate began to campaign, and when its terms ended
				m := t.connect()
				m.AddTrace(session.Trace{Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
					stood = append(stood, time.Now())
					return ctx, nil
				}})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error)
				healthy := t.election()
				go func() {
					ended <- healthy.Run(ctx, func(ctx context.Context) error {
						select {
						case <-time.After(12 * time.Second):
						case <-ctx.Done():
						}
						return nil
					})
				}()
				pass(time.Second)
				e := t.electionOf(m, opts...)
				for ctx.Err() == nil {
					_ = e.Run(ctx, func(context.Context) error {
						if len(failed) == rounds-1 {
							time.Sleep(11 * time.Second) // it can lead for once
						}
						if failed = append(failed, time.Now()); len(failed) == rounds+2 {
							cancel()
						}
						return errWork
					})
				}
				must(t, <-ended)
				rest := func(i int) time.Duration { return stood[i+1].Sub(failed[i]) }
				longest := time.Duration(0)
				for i := range rounds - 1 {
					if bound := min(timeout/2, 50*time.Millisecond<<min(i, 10)); rest(i) > bound+10*time.Millisecond {
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
