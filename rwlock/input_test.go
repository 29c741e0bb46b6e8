package rwlock_test

import (
	"context"
	"sync"
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
		{name: "root", path: "/"},
		{name: "nil option", path: "/locks/a", opts: []rwlock.Option{nil}},
		{name: "empty name", path: "/locks/a", opts: []rwlock.Option{rwlock.WithName("")}},

		{name: "no time to keep", path: "/locks/a", opts: []rwlock.Option{rwlock.WithLazyRelease(0)}},
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

// A Locker writes, and an RLocker reads. onLost is called for a loss.
func TestLockers(t *testing.T) {
	m, proxy := proxied(t)
	rw := newLock(t, m, testserver.Path(t))
	losses := make(chan error, 10)
	onLost := func(err error) { losses <- err }
	for name, l := range map[string]sync.Locker{"W*": rw.Locker(onLost), "R*": rw.RLocker(onLost)} {
		l.Lock()
		wantPicture(t, rw, name)
		expire(t, proxy, m)
		wantErr(t, name, receive(t, "onLost", losses), session.ErrLost)
		l.Unlock()
	}
	if len(losses) != 0 {
		t.Error("onLost was called without a loss:", <-losses)
	}
}
