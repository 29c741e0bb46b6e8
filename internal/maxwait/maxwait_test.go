package maxwait_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/maxwait"
	"github.com/turnstile-go/turnstile/kinds"
)

// The end of a wait that has lasted for too long is ErrMaxWait, whatever the error is made of, and nothing else is.
func TestBegin(t *testing.T) {
	why := errors.New("why")
	end := context.DeadlineExceeded
	op := func(err error) error { return &kinds.OpError{Op: "acquire", Path: "/a", Err: err} }
	wait := func() error { return &kinds.WaitError{Err: end, Reason: "held by a"} }
	for _, c := range []struct {
		what    string
		err     error
		bounded bool
		text    string
	}{
		{"a wait", op(wait()), true, "acquire /a: waited for as long as allowed (held by a)"},
		{"with more around", op(fmt.Errorf("late: %w", wait())), true, "acquire /a: late: context deadline exceeded (held by a)"},
		{"without a reason", op(end), true, "acquire /a: waited for as long as allowed"},
		{"bare", fmt.Errorf("a lock of a user: %w", end), true, "waited for as long as allowed"},
		{"another error", op(why), false, "acquire /a: why"},
		{"a busy lock", nil, false, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, finish := maxwait.Begin(maxwait.With(context.Background(), time.Second))
			<-ctx.Done()
			err := finish(c.err)
			if errors.Is(err, kinds.ErrMaxWait) != c.bounded || c.bounded && errors.Is(err, end) && c.what != "with more around" {
				t.Errorf("%s: %v", c.what, err)
			}
			if err != nil && err.Error() != c.text {
				t.Errorf("%s: %q, want %q", c.what, err, c.text)
			}
		})
	}
}

// Without a bound the context is the caller's. A bound is for one call, and does not outlive it.
func TestBound(t *testing.T) {
	ctx := context.Background()
	if inside, end := maxwait.Begin(ctx); inside != ctx || !errors.Is(end(context.Canceled), context.Canceled) {
		t.Error("a bound from nowhere")
	}
	bounded := maxwait.With(ctx, time.Hour)
	inside, end := maxwait.Begin(bounded)
	if again, _ := maxwait.Begin(inside); again != inside {
		t.Error("a call within the call is bounded again")
	}
	if end(nil) != nil || inside.Err() == nil {
		t.Error("the bound goes on after the call")
	}
	if without := maxwait.Without(bounded); without.Err() != nil {
		t.Error(without.Err())
	} else if again, _ := maxwait.Begin(without); again != without {
		t.Error("it is bounded all the same")
	}
	// The end of the caller's context is not that of the bound.
	late, cancel := context.WithTimeout(ctx, 0)
	defer cancel()
	inside, end = maxwait.Begin(maxwait.With(late, time.Hour))
	if err := end(inside.Err()); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kinds.ErrMaxWait) {
		t.Error(err)
	}
}

// Several waits of one call share its time, and can go on with the bound of another context.
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		if maxwait.Share(ctx) != ctx || maxwait.Of(ctx, ctx) != ctx {
			t.Error("a bound from nowhere")
		}
		began := time.Now()
		shared := maxwait.Share(maxwait.With(ctx, time.Second))
		time.Sleep(600 * time.Millisecond) //nolint:forbidigo // in a bubble
		type key struct{}
		work := maxwait.Of(context.WithValue(maxwait.With(ctx, time.Hour), key{}, "work"), maxwait.Share(shared))
		inside, end := maxwait.Begin(work)
		<-inside.Done()
		if took := time.Since(began); took != time.Second || inside.Value(key{}) != "work" {
			t.Errorf("%v, %v", took, inside.Value(key{}))
		}
		if err := end(inside.Err()); !errors.Is(err, kinds.ErrMaxWait) {
			t.Error(err)
		}
		if free := maxwait.Of(work, ctx); maxwait.Without(free) != free {
			t.Error("it is bounded all the same")
		}
	})
}

// Nearly all calls have no bound, and pay nothing for it.
func TestUnboundedAllocatesNothing(t *testing.T) {
	ctx := context.WithValue(context.Background(), t, t)
	if n := testing.AllocsPerRun(100, func() {
		_, end := maxwait.Begin(ctx)
		_ = end(nil)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
