package rounds_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"
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
		p := rounds.Pace{New: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) }}
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

// A wait ends with its context and with the channel. A backoff that stops is started again.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := rounds.Pace{New: func() backoff.BackOff { return &backoff.StopBackOff{} }}
		for range 2 {
			wait(t, &p)
		}
		if d := wait(t, &p); d != time.Second {
			t.Errorf("waits %v where none is given", d)
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

// Brief makes long waits shorter, and lets a backoff say stop.
func TestBrief(t *testing.T) {
	one := rounds.Brief(func() backoff.BackOff {
		return &backoff.ExponentialBackOff{InitialInterval: 300 * time.Millisecond, MaxInterval: time.Minute, Multiplier: 10}
	})()
	for i, want := range []time.Duration{300 * time.Millisecond, time.Second, time.Second} {
		if got := one.NextBackOff(); got != want {
			t.Errorf("wait %d is %v, want %v", i+1, got, want)
		}
	}
	if got := rounds.Brief(func() backoff.BackOff { return &backoff.StopBackOff{} })().NextBackOff(); got != backoff.Stop {
		t.Errorf("a backoff that stops gives %v", got)
	}
}
