package leasectx_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/leasectx"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/goroutines"
)

var errLost = errors.New("lost")

// lease is a lease that is over from some time on, although no timer says so.
type lease struct {
	hold context.Context
	end  context.CancelCauseFunc
	over time.Time
}

func newLease(d time.Duration) *lease {
	l := &lease{over: time.Now().Add(d)}
	l.hold, l.end = context.WithCancelCause(context.Background())
	return l
}

func (l *lease) Err() error {
	if !time.Now().Before(l.over) {
		l.end(errLost)
	}
	return context.Cause(l.hold)
}

func (l *lease) context(t *testing.T, parent context.Context) context.Context {
	ctx, cancel := leasectx.New(parent, l.hold, l.Err)
	t.Cleanup(cancel)
	return ctx
}

// The first look says that the lease is over, whichever method it calls, and so do all later ones.
// Nothing but the time has changed, and no goroutine has run.
func TestFirstLook(t *testing.T) {
	type key struct{}
	looks := map[string]func(ctx context.Context) error{
		"Err":   context.Context.Err,
		"Cause": context.Cause,
		"Done": func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return errLost
			default:
				return nil
			}
		},
		"Err of WithValue":   func(ctx context.Context) error { return context.WithValue(ctx, key{}, 1).Err() },
		"Cause of WithValue": func(ctx context.Context) error { return context.Cause(context.WithValue(ctx, key{}, 1)) },
		"a new WithCancel": func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return ctx.Err()
		},
		"a new WithTimeout": func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			return ctx.Err()
		},
		"another lease's": func(ctx context.Context) error {
			other := newLease(2 * time.Hour)
			ctx, cancel := leasectx.New(ctx, other.hold, other.Err)
			defer cancel()
			return ctx.Err()
		},
	}
	for name, look := range looks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLease(time.Second)
				ctx := l.context(t, context.Background())
				early, cancel := context.WithTimeout(context.WithValue(ctx, key{}, "value"), time.Hour)
				defer cancel()
				if err := errors.Join(ctx.Err(), early.Err(), look(ctx)); err != nil {
					t.Fatalf("before the end: %v", err)
				}
				time.Sleep(time.Second)
				if l.hold.Err() != nil {
					t.Fatal("something has ended the lease: this test shows nothing")
				}
				if err := look(ctx); err != context.Canceled && err != errLost {
					t.Errorf("the first look says %v", err)
				} else if strings.HasPrefix(name, "Cause") && err != errLost {
					t.Errorf("the first look at the cause says %v", err)
				}
				for _, ctx := range []context.Context{ctx, early} {
					if ctx.Err() != context.Canceled || context.Cause(ctx) != errLost {
						t.Errorf("%v: Err %v, cause %v", ctx, ctx.Err(), context.Cause(ctx))
					}
					select {
					case <-ctx.Done():
					default:
						t.Errorf("%v: Done is open", ctx)
					}
				}
			})
		})
	}
}

// A context under two leases ends with either of them, at the first look. So does a context that was
// derived from it before.
func TestLeaseWithinLease(t *testing.T) {
	for name, over := range map[string][2]time.Duration{
		"the outer ends": {time.Second, time.Hour},
		"the inner ends": {time.Hour, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				outer, inner := newLease(over[0]), newLease(over[1])
				ctx := inner.context(t, outer.context(t, context.Background()))
				early, cancel := context.WithCancel(ctx)
				defer cancel()
				time.Sleep(time.Second)
				if ctx.Err() == nil || early.Err() == nil || context.Cause(early) != errLost {
					t.Errorf("%v, %v, cause %v", ctx.Err(), early.Err(), context.Cause(early))
				}
			})
		})
	}
}

// The context keeps its parent's values and deadline, and the cause of the parent's end even if the
// lease ends later.
func TestParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		parent, end := context.WithTimeout(context.WithValue(context.Background(), key{}, "value"), time.Second)
		defer end()
		l := newLease(2 * time.Second)
		ctx := l.context(t, parent)
		deadline, ok := ctx.Deadline()
		want, _ := parent.Deadline()
		if ctx.Value(key{}) != "value" || !ok || !deadline.Equal(want) {
			t.Errorf("value %v, deadline %v, %v", ctx.Value(key{}), deadline, ok)
		}
		for range 2 {
			<-ctx.Done()
			if ctx.Err() != context.DeadlineExceeded || context.Cause(ctx) != context.DeadlineExceeded {
				t.Errorf("Err %v, cause %v", ctx.Err(), context.Cause(ctx))
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// The returned function ends the context, and does not end the lease.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLease(time.Second)
		ctx, cancel := leasectx.New(context.Background(), l.hold, l.Err)
		cancel()
		time.Sleep(2 * time.Second)
		if ctx.Err() != context.Canceled || context.Cause(ctx) != context.Canceled || l.hold.Err() != nil {
			t.Errorf("Err %v, cause %v; the lease: %v", ctx.Err(), context.Cause(ctx), l.hold.Err())
		}
	})
}

// When hold ends, the contexts end, although nobody looks at them.
func TestLeaseEnds(t *testing.T) {
	l := newLease(time.Hour)
	ctx, cancel := context.WithCancel(l.context(t, context.Background()))
	defer cancel()
	done := ctx.Done()
	l.end(errLost)
	<-done
	if context.Cause(ctx) != errLost {
		t.Errorf("cause %v", context.Cause(ctx))
	}
}

// Neither the contexts nor contexts that are derived from them cost goroutines.
func TestNoGoroutines(t *testing.T) {
	l := newLease(time.Hour)
	before := goroutines.Count()
	for range 100 {
		one := l.context(t, context.Background())
		derived, cancel := context.WithTimeout(l.context(t, one), time.Hour)
		defer cancel()
		defer context.AfterFunc(derived, func() {})()
	}
	if n := goroutines.Count() - before; n > 0 {
		t.Errorf("%d goroutines more", n)
	}
}

// Printing a context, as some libraries do, does not race with its end.
func TestString(t *testing.T) {
	l := newLease(time.Hour)
	ctx := l.context(t, context.Background())
	go l.end(errLost)
	if got := fmt.Sprint(ctx); got != "context.Background.WithCancel.Lease" {
		t.Error(got)
	}
}
