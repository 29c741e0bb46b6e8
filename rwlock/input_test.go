package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// The methods that zklock.Multi and similar code need.
var (
	_ = []interface {
		Path() string
		Acquire(context.Context) (*queue.Lease, error)
		TryAcquire(context.Context) (*queue.Lease, error)
		Lock(context.Context) error
		TryLock(context.Context) (bool, error)
		Unlock() error
		Held() bool
	}{(*rwlock.RWMutex)(nil), rwlock.Reader{}, (*zklock.Mutex)(nil)}
)

// New returns an error for bad input, before any I/O: the manager of this test cannot do any.
func TestNewInvalid(t *testing.T) {
	tests := []struct {
		name string
		path string
		opts []rwlock.Option
		ok   bool
	}{
		{name: "empty path", path: ""},
		{name: "no leading slash", path: "locks/a"},
		{name: "root", path: "/"},
		{name: "trailing slash", path: "/locks/"},
		{name: "nil option", path: "/locks/a", opts: []rwlock.Option{nil}},
		{name: "empty name", path: "/locks/a", opts: []rwlock.Option{rwlock.WithName("")}},
		{name: "bad option after a good one", path: "/locks/a", opts: []rwlock.Option{rwlock.WithName("a"), nil}},

		{name: "no time to keep", path: "/locks/a", opts: []rwlock.Option{rwlock.WithLazyRelease(0)}},
		{name: "negative time to keep", path: "/locks/a", opts: []rwlock.Option{rwlock.WithLazyRelease(-1)}},
		{name: "too long to keep", path: "/locks/a", opts: []rwlock.Option{rwlock.WithLazyRelease(time.Minute + 1)}},
		{name: "plain", path: "/locks/a", ok: true},
		{name: "options", path: "/locks/a", ok: true, opts: []rwlock.Option{rwlock.WithName("a")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rw, err := rwlock.New(new(session.Manager), tt.path, tt.opts...)
			if tt.ok {
				must(t, err)
				if rw.Path() != tt.path || rw.Reader().Path() != tt.path {
					t.Errorf("path %s, of the reader %s", rw.Path(), rw.Reader().Path())
				}
				return
			}
			wantErr(t, "New", err, session.ErrInvalid)
			if rw != nil {
				t.Error("an RWMutex beside an error")
			}
		})
	}
	_, err := rwlock.New(nil, "/locks/a")
	wantErr(t, "New of a nil manager", err, session.ErrInvalid)
}

// Readers that share a node are all told that another client asks for it, and the next reader gets a node of its own.
func TestSharedReadersAreRevoked(t *testing.T) {
	dir := persistentDir(t)
	rw := newLock(t, connect(t), dir, rwlock.WithLazyRelease(time.Minute))
	one, err := rw.Reader().Acquire(patient(t))
	must(t, err)
	two, err := rw.Reader().Acquire(patient(t))
	must(t, err)
	if one.Path() != two.Path() {
		t.Fatal("the readers do not share a node")
	}
	_, err = testserver.Admin(t).Set(one.Path(), []byte(queue.RevokeMessage), -1)
	must(t, err)
	receive(t, "the request to the first reader", one.Revoked())
	receive(t, "the request to the second reader", two.Revoked())
	must(t, one.Err())
	three, err := rw.Reader().Acquire(patient(t))
	must(t, err)
	if three.Path() == one.Path() {
		t.Error("a reader joins a node that was asked for")
	}
	for _, l := range []*queue.Lease{one, two, three} {
		must(t, l.Release(patient(t)))
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// The lockers can replace a sync.RWMutex: readers share the lock, a writer holds it alone, and one unlock too many
// panics. onLost is called for a loss.
func TestLockers(t *testing.T) {
	m, proxy := proxied(t)
	dir := testserver.Path(t)
	rw := newLock(t, m, dir)
	losses := make(chan error, 10)
	onLost := func(err error) { losses <- err }
	write, read := rw.Locker(onLost), rw.RLocker(onLost)
	read.Lock()
	read.Lock() // beside the other
	written := background(func() error {
		write.Lock()
		return nil
	})
	testserver.WaitChildren(t, dir, 3)
	wantPicture(t, rw, "R* R* W")
	read.Unlock()
	pending(t, "Lock", written)
	read.Unlock()
	must(t, receive(t, "Lock", written))
	if !rw.Held() || rw.Reader().Held() {
		t.Error("not held as locked")
	}
	write.Unlock()
	for name, unlock := range map[string]func(){"Unlock": write.Unlock, "RUnlock": read.Unlock} {
		if !panics(unlock) {
			t.Errorf("%s of an unheld lock does not panic", name)
		}
	}
	for name, l := range map[string]interface {
		Lock()
		Unlock()
	}{"Locker": write, "RLocker": read} {
		l.Lock()
		expire(t, proxy, m)
		wantErr(t, name, receive(t, "onLost", losses), session.ErrLost)
		if panics(l.Unlock) {
			t.Errorf("%s: Unlock of a lost lock panics", name)
		}
	}
	must(t, m.Close())
	if len(losses) != 0 {
		t.Error("onLost was called without a loss:", <-losses)
	}
}
