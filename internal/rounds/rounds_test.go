package rounds_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/turnstile-go/turnstile/internal/rounds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wait returns how long a Wait took.
func wait(t *testing.T, p *rounds.Pace) time.Duration {
	t.Helper()
	began := time.Now()
	if err := p.Wait(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

// The first rounds do not wait. In a loop that goes on, the waits grow up to a second.
func TestGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p rounds.Pace
		for range 2 {
			if d := wait(t, &p); d != 0 {
				t.Errorf("an early round waits %v", d)
			}
		}
		began, rounds := time.Now(), 0
		for time.Since(began) < 10*time.Minute {
			if d := wait(t, &p); d > time.Second {
				t.Fatalf("a wait of %v", d)
			}
			rounds++
		}
		if rounds < 600 || rounds > 2400 { // half a second each, on average
			t.Errorf("%d rounds in ten minutes", rounds)
		}
	})
}

// The pace is reset by Reset, by a round that has rested, and after a long round.
func TestAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := *rounds.NewPace(time.Hour, time.Hour)
		for _, anew := range []func(){p.Reset, func() { p.Rested(50 * time.Millisecond) }, func() { time.Sleep(10 * time.Second) }} {
			for i := range 3 {
				if d := wait(t, &p); (d > 0) != (i == 2) {
					t.Errorf("wait %d takes %v", i, d)
				}
			}
			anew()
			if d := wait(t, &p); d != 0 {
				t.Errorf("afterwards it waits %v", d)
			}
			p.Reset()
		}
	})
}

// A wait ends with its context and with the channel.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := *rounds.NewPace(time.Hour, time.Hour)
		for range 2 {
			wait(t, &p)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := p.Wait(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a context that ends: %v", err)
		}
		end := make(chan struct{})
		close(end)
		began := time.Now()
		if err := p.Wait(t.Context(), end); err != nil || time.Since(began) > 0 {
			t.Errorf("with an end: %v, after %v", err, time.Since(began))
		}
	})
}

// The bound of the waits doubles from First to Most, and begins again. BriefPace bounds it by a second.
func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		name    string
		waits   rounds.Backoff
		longest []time.Duration
	}{
		{"zero value", rounds.Backoff{}, []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}},
		{"bounds", rounds.NewPace(time.Second, 3*time.Second).Backoff, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second}},
		{"brief", rounds.BriefPace(300*time.Millisecond, time.Minute).Backoff, []time.Duration{300 * time.Millisecond, 600 * time.Millisecond, time.Second, time.Second}},
		{"brief and long", rounds.BriefPace(time.Minute, time.Hour).Backoff, []time.Duration{time.Second, time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			most := make([]time.Duration, len(c.longest))
			for range 200 {
				waits := c.waits // a copy draws on its own
				for round := range 2 {
					for i, longest := range c.longest {
						d := waits.Next()
						if d < 0 || d > longest+time.Nanosecond {
							t.Fatalf("round %d: wait %d is %v, and at most %v is meant", round, i+1, d, longest)
						}
						most[i] = max(most[i], d)
					}
					waits.Reset()
				}
			}
			for i, longest := range c.longest {
				if most[i] < longest/2 {
					t.Errorf("of 400 waits, the longest wait %d is %v, and up to %v is meant", i+1, most[i], longest)
				}
			}
		})
	}
}
