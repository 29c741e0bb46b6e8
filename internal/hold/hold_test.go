package hold_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// lease is a lease that calls a function when Err is called, so that something happens at that moment.
type lease struct {
	name string

	mu     sync.Mutex
	cause  error
	end    place.End // of the release
	given  bool      // it was released, lost or not
	looked func()    // called once, at the next Err
	asked  place.Revocation
}

func (l *lease) Err() error {
	l.mu.Lock()
	looked := l.looked
	l.looked = nil
	l.mu.Unlock()
	if looked != nil {
		looked()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

func (l *lease) Done() <-chan struct{} { return nil }

func (l *lease) AfterEnd(func()) {}

func (l *lease) Revocation() *place.Revocation { return &l.asked }

// Work looks at the clock, as leasectx.New does.
func (l *lease) Work(ctx context.Context) (context.Context, context.CancelFunc) {
	_ = l.Err()
	return context.WithCancel(ctx)
}

// Release looks at the clock first, as that of queue.Lease does.
func (l *lease) Release(_ context.Context, end place.End) error {
	_ = l.Err()
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.cause
	l.given = true
	if before == nil {
		l.cause, l.end = queue.ErrReleased, end
	}
	return before
}

func (l *lease) Unlock(end place.End, _ bool) error { return l.Release(context.Background(), end) }

func (l *lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cause = session.ErrLost
}

func (l *lease) when(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looked = f
}

// lock takes a new lease.
func lock(t *testing.T, h *hold.Holds[*lease], ctx context.Context, name string) *lease {
	t.Helper()
	defer func(before hold.Get[*lease]) { h.Get = before }(h.Get)
	h.Get = get(name)
	held, err := h.Enter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return held.Lease
}

func get(name string) hold.Get[*lease] {
	return hold.InOneStep(func(context.Context) (*lease, error) { return &lease{name: name}, nil })
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// One goroutine of an owner unlocks while another enters the hold again. The hold has ended, so the other gets a new lease
// and no loss.
func TestReenterBesideUnlock(t *testing.T) {
	h := hold.Many[*lease]("/lock", nil)
	owner := hold.WithOwner(context.Background())
	first := lock(t, h, owner, "first")
	first.when(func() { wantErr(t, "Unlock", h.Unlock(), nil) })
	if second := lock(t, h, owner, "second"); second.name != "second" {
		t.Errorf("entered the %s hold, which has ended", second.name)
	}
	wantErr(t, "Unlock", h.Unlock(), nil)
	wantErr(t, "Unlock", h.Unlock(), hold.ErrNotHeld)
}

// Two goroutines give back their Locks of one hold at the same time. Neither gets an error because of the other's release.
func TestUnlockBesideUnlock(t *testing.T) {
	h := hold.Many[*lease]("/lock", nil)
	owner := hold.WithOwner(context.Background())
	l := lock(t, h, owner, "the")
	lock(t, h, owner, "no other")
	// Err is called to see whether the hold was lost, once the outer Lock was given back.
	l.when(func() { wantErr(t, "the inner Unlock", h.Unlock(), nil) })
	wantErr(t, "the outer Unlock", h.Unlock(), nil)
	wantErr(t, "one Unlock more", h.Unlock(), hold.ErrNotHeld)
	if h.Held() {
		t.Error("held")
	}
}

// Unlock gives back a lost hold first, then one without an owner, then the oldest. It never gives back the hold of a Do.
func TestUnlockOrder(t *testing.T) {
	h := hold.Many[*lease]("/lock", nil)
	ctx := context.Background()
	h.Get = get("of Do")
	inside, leave := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- h.Do(ctx, func(context.Context) error {
			close(inside)
			<-leave
			return nil
		})
	}()
	<-inside
	leases := []*lease{
		lock(t, h, hold.WithOwner(ctx), "first owner's"), lock(t, h, ctx, "first"),
		lock(t, h, hold.WithOwner(ctx), "second owner's"), lock(t, h, ctx, "second"),
		lock(t, h, hold.WithOwner(ctx), "third owner's, lost"),
	}
	leases[4].lose()
	for _, want := range []struct {
		given int
		err   error
	}{{4, session.ErrLost}, {1, nil}, {3, nil}, {0, nil}, {2, nil}} {
		standing := leases[want.given].Err()
		wantErr(t, "Unlock", h.Unlock(), want.err)
		if want.err == nil && (standing != nil || !errors.Is(leases[want.given].Err(), queue.ErrReleased)) {
			t.Errorf("Unlock did not give back the %s lease", leases[want.given].name)
		}
	}
	wantErr(t, "Unlock while there is a Do alone", h.Unlock(), hold.ErrNotHeld)
	if !h.Held() {
		t.Error("the hold of Do is gone")
	}
	close(leave)
	wantErr(t, "Do", <-done, nil)
	wantErr(t, "one Unlock more", h.Unlock(), hold.ErrNotHeld)
}
