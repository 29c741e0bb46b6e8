package hold_test

import (
	"context"
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/queue"
)

// steps is an acquisition that waits so many times.
type steps struct {
	waits, waited int
	during        func() // called by each Wait
	lease         *lease
	err           error
}

func (s *steps) Next() (*lease, bool, error) {
	if s.waited < s.waits {
		return nil, true, nil
	}
	return s.lease, false, s.err
}

func (s *steps) Wait() {
	s.waited++
	s.during()
}

func (s *steps) get(context.Context) hold.Acquisition[*lease] { return s }

// A Lock goes on with the acquisition that waits, and begins no other: that would be a second contender.
func TestLockInSteps(t *testing.T) {
	h := hold.One[*lease]("/lock", nil)
	ctx := hold.WithOwner(context.Background())
	refused := 0
	h.Refuse = func(context.Context) error { refused++; return nil }
	s := &steps{waits: 3, lease: &lease{name: "the"}, during: func() {}}
	begun := 0
	h.Get = func(ctx context.Context) hold.Acquisition[*lease] { begun++; return s.get(ctx) }
	held, err := h.Enter(ctx)
	if err != nil || held.Lease != s.lease || s.waited != 3 || begun != 1 || refused != 1 {
		t.Fatalf("%v, %v after %d waits of %d acquisitions; Refuse was called %d times", held, err, s.waited, begun, refused)
	}
	if err := h.Unlock(); err != nil {
		t.Fatal(err)
	}
	why := errors.New("why")
	h.Get = (&steps{waits: 1, err: why, during: func() {}}).get
	if err := h.Lock(ctx); !errors.Is(err, why) {
		t.Errorf("error %v, want %v", err, why)
	}
	h.Get = get("the next")
	if err := h.Lock(ctx); err != nil {
		t.Errorf("after an error: %v", err)
	}
}

// The slot is taken while a Lock waits for its lease. The Lock gives up the lease that it gets, waits for the Unlock, and
// gets another. If a lease is lost at once, it gets another too.
func TestSlotIsTakenDuringSteps(t *testing.T) {
	h := hold.One[*lease]("/lock", nil)
	ctx := context.Background()
	var first *lease
	given, lost, last := &lease{name: "given"}, &lease{name: "lost"}, &lease{name: "last"}
	given.when(func() { // when it comes, and then when it is given up
		given.when(func() {
			if err := h.Unlock(); err != nil {
				t.Error(err)
			}
		})
	})
	all := []*steps{
		{waits: 1, lease: given, during: func() { first = lock(t, h, ctx, "first") }},
		{waits: 1, lease: lost, during: lost.lose},
		{waits: 1, lease: last, during: func() {}},
	}
	h.Get = func(context.Context) hold.Acquisition[*lease] {
		next := all[0]
		all = all[1:]
		return next
	}
	held, err := h.Enter(ctx)
	if err != nil || held.Lease != last {
		t.Fatalf("%v, %v", held, err)
	}
	for _, l := range []*lease{first, given} {
		if !errors.Is(l.Err(), queue.ErrReleased) {
			t.Errorf("the %s lease: %v", l.name, l.Err())
		}
	}
	if given.end != place.Unwanted {
		t.Error("a place is kept for a lease that nobody has used")
	}
}

// pausing is a context that calls a function when a call looks whether it has ended, as each pause does.
type pausing struct {
	context.Context
	looked func()
}

func (p pausing) Err() error {
	p.looked()
	return p.Context.Err()
}

// A lease that is lost when it comes is given up before the pause, and not after it: it may consist of several, and others
// of these may be held.
func TestLostLeaseIsGivenUpBeforePause(t *testing.T) {
	h := hold.One[*lease]("/lock", nil)
	lost, last := &lease{name: "lost"}, &lease{name: "last"}
	lost.lose()
	after := 0 // looks at the context after the release: those of the pause
	ctx := pausing{context.Background(), func() {
		if lost.given {
			after++
		}
	}}
	all := []*lease{lost, last}
	h.Get = hold.InOneStep(func(context.Context) (*lease, error) {
		next := all[0]
		if all = all[1:]; next == last && after == 0 {
			t.Error("there is no pause after the release")
		}
		return next, nil
	})
	held, err := h.Enter(ctx)
	if err != nil || held.Lease != last || !lost.given {
		t.Errorf("%v, %v; the lost lease was given up: %v", held, err, lost.given)
	}
}
