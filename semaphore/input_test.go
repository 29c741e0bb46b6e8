package semaphore_test

import (
	"math"
	"testing"

	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
)

// New returns an error for bad input, before any I/O: the manager of this test cannot do any.
func TestNewInvalid(t *testing.T) {
	tests := []struct {
		name  string
		path  string
		limit int
		opts  []semaphore.Option
		ok    bool
	}{
		{name: "no leases", path: "/limits/a"},
		{name: "fewer than none", path: "/limits/a", limit: -1},
		{name: "more than a name can say", path: "/limits/a", limit: math.MaxInt, ok: math.MaxInt == math.MaxInt32},
		{name: "root", path: "/", limit: 1},
		{name: "root, Curator's", path: "/", limit: 1, opts: []semaphore.Option{semaphore.WithCuratorLayout()}},
		{name: "empty name", path: "/limits/a", limit: 1, opts: []semaphore.Option{semaphore.WithName("")}},

		{name: "one", path: "/limits/a", limit: 1, ok: true},
		{name: "as many as there may be", path: "/limits/a", limit: math.MaxInt32, ok: true},
		{name: "all options", path: "/limits/a", limit: 3, ok: true, opts: []semaphore.Option{
			semaphore.WithCuratorLayout(),
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := semaphore.New(new(session.Manager), tt.path, tt.limit, tt.opts...)
			if tt.ok {
				must(t, err)
				if s.Path() != tt.path {
					t.Errorf("path %q", s.Path())
				}
				return
			}
			wantErr(t, "New", err, session.ErrInvalid)
			if s != nil {
				t.Error("a Semaphore beside an error")
			}
		})
	}
	_, err := semaphore.New(nil, "/limits/a", 1)
	wantErr(t, "New of a nil manager", err, session.ErrInvalid)
}

// A request that can never be granted is refused before any I/O: the manager of this test cannot do any.
func TestRequestInvalid(t *testing.T) {
	ctx := t.Context()
	plain := newSem(t, new(session.Manager), "/limits/a", 3)
	curator := newSem(t, new(session.Manager), "/limits/a", 3, semaphore.WithCuratorLayout())
	tests := []struct {
		name string
		sem  *semaphore.Semaphore
		n    int
		says string
	}{
		{"none", plain, 0, "0 leases"},
		{"fewer than none", plain, -1, "-1 leases"},
		{"the least there is", plain, math.MinInt, "leases"},
		{"the most there is", plain, math.MaxInt, "leases"},
		{"two in Curator's layout", curator, 2, "one lease"},
		{"none in Curator's layout", curator, 0, "0 leases"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.sem.AcquireN(ctx, tt.n)
			wantErr(t, "AcquireN", err, session.ErrInvalid)
			wantText(t, err, tt.says, "/limits/a")
			_, err = tt.sem.TryAcquireN(ctx, tt.n)
			wantErr(t, "TryAcquireN", err, session.ErrInvalid)
		})
	}
	for _, n := range []int{0, -1, math.MaxInt} {
		wantErr(t, "Resize", plain.Resize(ctx, n), session.ErrInvalid)
	}
	err := curator.Resize(ctx, 2)
	wantErr(t, "Resize in Curator's layout", err, session.ErrInvalid)
	wantText(t, err, "Curator")
}
