package share_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// lease is a lease without a server. It calls a function when Err is called, so that something happens at that moment.
type lease struct {
	name string

	mu      sync.Mutex
	cause   error
	unused  bool   // it was given up
	looked  func() // called once, at the next Err
	revoked bool
	ends    []func() // called when it is lost
	asks    []func() // called when it is revoked
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

func (l *lease) AfterEnd(f func()) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, f)
	return func() {}
}

func (l *lease) IsRevoked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.revoked
}

func (l *lease) AfterRevoke(f func()) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asks = append(l.asks, f)
	return func() {}
}

// Context looks at the clock, as that of queue.Lease does.
func (l *lease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	_ = l.Err()
	return context.WithCancel(ctx)
}

// Unlock looks at the clock first, as that of queue.Lease does.
func (l *lease) Unlock(time.Duration) error {
	_ = l.Err()
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.cause
	if before == nil {
		l.cause = queue.ErrReleased
	}
	return before
}

func (l *lease) GiveUp(context.Context) error {
	l.mu.Lock()
	l.unused = true
	l.mu.Unlock()
	return l.Unlock(0)
}

func (l *lease) lose(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cause = cause
	for _, f := range l.ends {
		go f()
	}
}

func (l *lease) when(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looked = f
}

// lock takes a new lease.
func lock(t *testing.T, h *share.Holds[*lease], ctx context.Context, name string) *lease {
	t.Helper()
	l := &lease{name: name}
	expect.NoError(t, h.Lock(ctx, get(l)))
	return l
}

func get(l *lease) share.Get[*lease] {
	return func(context.Context, bool) (*lease, error) { return l, nil }
}

// never is for a call that needs no lease.
func never(t *testing.T) share.Get[*lease] {
	return func(context.Context, bool) (*lease, error) {
		t.Error("a lease is asked for")
		return nil, queue.ErrBusy
	}
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
	h := &share.Holds[*lease]{Path: "/lock"}
	owner := queue.WithOwner(context.Background())
	first := lock(t, h, owner, "first")
	first.when(func() { wantErr(t, "Unlock", h.Unlock(), nil) })
	lock(t, h, owner, "second")
	if err := first.Err(); !errors.Is(err, queue.ErrReleased) {
		t.Errorf("the first lease: %v", err)
	}
	wantErr(t, "Unlock", h.Unlock(), nil)
	wantErr(t, "Unlock", h.Unlock(), share.ErrNotHeld)
}

// Two goroutines give back their Locks of one hold at the same time. Neither gets an error because of the other's release.
func TestUnlockBesideUnlock(t *testing.T) {
	h := &share.Holds[*lease]{Path: "/lock"}
	owner := queue.WithOwner(context.Background())
	l := lock(t, h, owner, "the")
	wantErr(t, "the inner Lock", h.Lock(owner, never(t)), nil)
	// Err is called to see whether the hold was lost, once the outer Lock was given back.
	l.when(func() { wantErr(t, "the inner Unlock", h.Unlock(), nil) })
	wantErr(t, "the outer Unlock", h.Unlock(), nil)
	wantErr(t, "one Unlock more", h.Unlock(), share.ErrNotHeld)
	if h.Held() {
		t.Error("held")
	}
}

// Unlock gives back a lost hold first, then one without an owner, then the oldest. It never gives back the hold of a Do.
func TestUnlockOrder(t *testing.T) {
	h := &share.Holds[*lease]{Path: "/lock"}
	ctx := context.Background()
	inside, leave := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- h.Do(ctx, get(&lease{}), func(context.Context) error {
			close(inside)
			<-leave
			return nil
		})
	}()
	<-inside
	leases := []*lease{
		lock(t, h, queue.WithOwner(ctx), "first owner's"), lock(t, h, ctx, "first"),
		lock(t, h, queue.WithOwner(ctx), "second owner's"), lock(t, h, ctx, "second"),
		lock(t, h, queue.WithOwner(ctx), "third owner's, lost"),
	}
	leases[4].lose(session.ErrLost)
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
	wantErr(t, "Unlock while there is a Do alone", h.Unlock(), share.ErrNotHeld)
	if !h.Held() {
		t.Error("the hold of Do is gone")
	}
	close(leave)
	wantErr(t, "Do", <-done, nil)
	wantErr(t, "one Unlock more", h.Unlock(), share.ErrNotHeld)
}

// A lost hold keeps the slot until its Unlock. Meanwhile a Lock asks for no lease, and a try is busy.
func TestLostHoldKeepsSlot(t *testing.T) {
	withSlot(t, func(t *testing.T, ctx context.Context, h *share.Holds[*lease]) {
		lost := lock(t, h, ctx, "lost")
		lost.lose(session.ErrLost)
		if ok, err := h.TryLock(ctx, never(t)); ok || err != nil {
			t.Errorf("TryLock: %v, %v", ok, err)
		}
		soon, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		wantErr(t, "Lock", h.Lock(soon, never(t)), context.DeadlineExceeded)
		next := &lease{name: "next"}
		locked := expect.Go(func() error { return h.Lock(ctx, get(next)) })
		synctest.Wait()
		if len(locked) > 0 {
			t.Fatal("Lock did not wait for the slot")
		}
		wantErr(t, "Unlock", h.Unlock(), session.ErrLost)
		wantErr(t, "Lock", <-locked, nil)
		wantErr(t, "Unlock", h.Unlock(), nil)
		wantErr(t, "the next lease", next.Err(), queue.ErrReleased)
	})
}

// A lease that comes while the slot is taken is given up, and its place is not kept. The Lock waits for the slot.
func TestLeaseWithoutSlotIsGivenUp(t *testing.T) {
	withSlot(t, func(t *testing.T, ctx context.Context, h *share.Holds[*lease]) {
		granted := make(chan *lease)
		locked := expect.Go(func() error {
			return h.Lock(ctx, func(context.Context, bool) (*lease, error) { return <-granted, nil })
		})
		synctest.Wait()
		holder := lock(t, h, ctx, "holder")
		first, second := &lease{}, &lease{}
		granted <- first
		synctest.Wait()
		if !first.unused || len(locked) > 0 {
			t.Errorf("the lease was given up: %v; Lock has returned: %v", first.unused, len(locked) > 0)
		}
		holder.lose(session.ErrLost)
		wantErr(t, "Unlock", h.Unlock(), session.ErrLost)
		granted <- second
		wantErr(t, "Lock", <-locked, nil)
		wantErr(t, "Unlock", h.Unlock(), nil)
	})
}

// A call that takes several leases is interrupted when the hold in the slot is lost, and begins again after its Unlock.
func TestInterruptedAtLoss(t *testing.T) {
	withSlot(t, func(t *testing.T, ctx context.Context, h *share.Holds[*lease]) {
		h.Several = true
		holder := lock(t, h, ctx, "holder")
		calls := make(chan int, 10)
		locked := make(chan error, 1)
		go func() {
			locked <- h.Lock(ctx, func(ctx context.Context, _ bool) (*lease, error) {
				calls <- 1
				if len(calls) > 1 {
					return &lease{}, nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			})
		}()
		synctest.Wait()
		holder.lose(session.ErrLost)
		synctest.Wait()
		if len(calls) != 1 || len(locked) > 0 {
			t.Errorf("%d calls before the Unlock", len(calls))
		}
		wantErr(t, "Unlock", h.Unlock(), session.ErrLost)
		wantErr(t, "Lock", <-locked, nil)
		wantErr(t, "Unlock", h.Unlock(), nil)
	})
}

// A Locker logs a refusal once a minute, and ends its goroutine when the manager is closed. Its Unlock of what is not held
// panics.
func TestLocker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := make(logLines, 100)
		m, err := session.Open("127.0.0.1:1", session.WithDialer(nowhere), session.WithLogger(slog.New(lines)))
		expect.NoError(t, err)
		h := &share.Holds[*lease]{Path: "/lock", Manager: m, Slot: true}
		locker := h.Locker(func(context.Context, bool) (*lease, error) { return nil, queue.ErrConflict }, nil)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Unlock of what is not held does not panic")
				}
			}()
			locker.Unlock()
		}()
		ended := make(chan bool, 1)
		go func() {
			returned := false
			defer func() { ended <- returned }()
			defer locker.Unlock() // as in the Wait of a sync.Cond
			locker.Lock()
			returned = true
		}()
		time.Sleep(150 * time.Second)
		if n := lines.count("Lock failed"); n != 3 {
			t.Errorf("%d lines in two and a half minutes", n)
		}
		_ = m.Close()
		if <-ended {
			t.Error("Lock has returned")
		}
		synctest.Wait()
		if n := lines.count("ends its goroutine"); n != 1 {
			t.Errorf("%d lines of the end", n)
		}
	})
}

// A Locker tells a loss, and neither a release nor the end of the manager.
func TestLockerTellsLoss(t *testing.T) {
	for cause, want := range map[error]int{session.ErrLost: 1, session.ErrClosed: 0, queue.ErrReleased: 0} {
		synctest.Test(t, func(t *testing.T) {
			h := &share.Holds[*lease]{Path: "/lock", Slot: true}
			told := make(chan error, 2)
			l := &lease{}
			h.Locker(get(l), func(err error) { told <- err }).Lock()
			l.lose(cause)
			synctest.Wait()
			if len(told) != want {
				t.Errorf("%v: told %d times", cause, len(told))
			}
		})
	}
}

// withSlot runs a test in a bubble, with holds that have a slot, and a context that ends after an hour.
func withSlot(t *testing.T, f func(t *testing.T, ctx context.Context, h *share.Holds[*lease])) {
	synctest.Test(t, func(t *testing.T) {
		m, err := session.Open("127.0.0.1:1", session.WithDialer(nowhere))
		expect.NoError(t, err)
		defer m.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		f(t, ctx, &share.Holds[*lease]{Path: "/lock", Manager: m, Slot: true})
	})
}

func nowhere(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no server") }

// logLines keeps the messages of a log.
type logLines chan string

func (l logLines) Enabled(context.Context, slog.Level) bool { return true }
func (l logLines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l logLines) WithGroup(string) slog.Handler            { return l }

func (l logLines) Handle(_ context.Context, r slog.Record) error {
	l <- r.Message
	return nil
}

func (l logLines) count(part string) (n int) {
	for range len(l) {
		if line := <-l; strings.Contains(line, part) {
			n++
		} else {
			l <- line
		}
	}
	return n
}

// A Lock that has got the lease needs the bound of its wait no longer. The timer of a long bound would stay in memory for as
// long as that.
func TestLockEndsItsBound(t *testing.T) {
	h := &share.Holds[*lease]{Path: "/lock"}
	ctx := queue.WithMaxWait(t.Context(), time.Hour)
	var inside context.Context
	wantErr(t, "Lock", h.Lock(ctx, func(ctx context.Context, _ bool) (*lease, error) {
		inside = ctx
		return &lease{}, nil
	}), nil)
	if inside.Err() == nil {
		t.Error("the context of the wait goes on after the call")
	}
	wantErr(t, "Unlock", h.Unlock(), nil)
}
