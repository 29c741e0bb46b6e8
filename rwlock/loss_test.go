package rwlock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
)

// RUnlock gives up lost holds first, and returns the loss. The holds of the next session, and those of other objects,
// stay.
func TestReadersLost(t *testing.T) {
	m, proxy := proxied(t)
	dir := testserver.Path(t)
	rw, another := newLock(t, m, dir), newLock(t, connect(t), dir)
	must(t, another.RLock(patient(t)))
	for range 3 {
		must(t, rw.RLock(patient(t)))
	}
	expire(t, proxy, m)
	waitLost(t, rw.Reader().Held)
	for range 2 {
		must(t, rw.RLock(patient(t)))
	}
	for range 3 {
		wantErr(t, "RUnlock", rw.RUnlock(), session.ErrLost)
		if !rw.Reader().Held() {
			t.Error("the readers of the new session have lost their lock")
		}
		wantPicture(t, another, "R* R* R*")
	}
	for range 2 {
		must(t, rw.RUnlock())
	}
	wantErr(t, "one RUnlock more", rw.RUnlock(), rwlock.ErrNotHeld)
	wantPicture(t, another, "R*")
	if !another.Reader().Held() {
		t.Error("another's read lock is gone")
	}
	must(t, another.RUnlock())
}

// An operator deletes the node of the last of three readers. RUnlock gives that one up first, and the others stay.
func TestOneReaderLost(t *testing.T) {
	dir := testserver.Path(t)
	rw := newLock(t, connect(t), dir)
	lost := make(chan error, 3)
	l := rw.RLocker(func(err error) { lost <- err })
	for range 3 {
		l.Lock()
	}
	all, err := rw.Contenders(patient(t))
	must(t, err)
	testserver.Delete(t, all[2].Path)
	wantErr(t, "onLost", receive(t, "the loss", lost), session.ErrLost)
	wantErr(t, "RUnlock", rw.RUnlock(), session.ErrLost)
	wantPicture(t, rw, "R* R*")
	for range 2 {
		must(t, rw.RUnlock())
	}
	wantErr(t, "one RUnlock more", rw.RUnlock(), rwlock.ErrNotHeld)
	testserver.WaitChildren(t, dir, 0)
}

// Unlock tells a writer that it has lost the lock, and frees no other lock. Until then no other writer gets the lock
// through the same RWMutex, but writers of other processes do.
func TestWriterLost(t *testing.T) {
	m, proxy := proxied(t)
	dir := testserver.Path(t)
	rw, another := newLock(t, m, dir), newLock(t, connect(t), dir)
	must(t, rw.Lock(patient(t)))
	expire(t, proxy, m)
	waitLost(t, rw.Held)
	must(t, another.Lock(patient(t)))
	must(t, another.Unlock())

	next := background(func() error { return rw.Lock(patient(t)) })
	must(t, another.Lock(patient(t)))
	must(t, another.Unlock())
	pending(t, "Lock while the lost hold stands", next)
	if rw.Held() {
		t.Error("held, though the lost hold stands")
	}
	wantErr(t, "Unlock", rw.Unlock(), session.ErrLost)
	must(t, receive(t, "Lock after that", next))
	must(t, rw.Unlock())

	must(t, rw.Lock(patient(t)))
	expire(t, proxy, m)
	waitLost(t, rw.Held)
	must(t, another.RLock(patient(t)))
	wantErr(t, "Unlock", rw.Unlock(), session.ErrLost)
	wantPicture(t, another, "R*")
	must(t, another.RUnlock())
}

// While a writer that has lost the lock hangs, a reader that wants to write still gets ErrUpgrade at once. Otherwise it
// would wait with its read lock.
func TestUpgradeBesideLostWriter(t *testing.T) {
	dir := testserver.Path(t)
	rw := newLock(t, connect(t), dir)
	must(t, rw.Lock(patient(t)))
	testserver.Delete(t, dir, testserver.Children(t, dir)[0])
	waitLost(t, rw.Held)
	owner := queue.WithOwner(patient(t))
	must(t, rw.RLock(owner))
	wantErr(t, "Lock", receive(t, "Lock", background(func() error { return rw.Lock(owner) })), rwlock.ErrUpgrade)
	_, err := rw.TryLock(owner)
	wantErr(t, "TryLock", err, rwlock.ErrUpgrade)
	must(t, rw.RUnlock())
	wantErr(t, "Unlock", rw.Unlock(), session.ErrLost)
}

// An owner of both locks that loses both is told of both. If only the write lock's node is gone, the read lock stays, and
// keeps writers out.
func TestBothLost(t *testing.T) {
	m, proxy := proxied(t)
	dir := testserver.Path(t)
	rw, another := newLock(t, m, dir), newLock(t, connect(t), dir)
	owner := queue.WithOwner(patient(t))
	both := func() {
		t.Helper()
		must(t, rw.Lock(owner))
		must(t, rw.RLock(owner))
	}
	both()
	expire(t, proxy, m)
	waitLost(t, func() bool { return rw.Held() || rw.Reader().Held() })
	wantErr(t, "Unlock", rw.Unlock(), session.ErrLost)
	wantErr(t, "Lock", rw.Lock(owner), session.ErrLost) // it still has a lost read lock
	wantErr(t, "RUnlock", rw.RUnlock(), session.ErrLost)

	both()
	for _, name := range testserver.Children(t, dir) {
		if n, _ := queue.ParseNode(name); n.Prefix == queue.PrefixWrite {
			testserver.Delete(t, dir, name)
		}
	}
	waitLost(t, rw.Held)
	wantErr(t, "Unlock", rw.Unlock(), session.ErrLost)
	wantTry(t, "TryLock of another", another.TryLock, patient(t), false)
	if !rw.Reader().Held() {
		t.Error("the read lock is gone")
	}
	must(t, rw.RUnlock())
	must(t, another.Lock(patient(t)))
	must(t, another.Unlock())
}

var errWork = errors.New("the work went wrong")

// When the lock is lost, the Do of writers and of readers ends the function's context, returns the loss with the
// function's error, and unlocks.
func TestDo(t *testing.T) {
	m, proxy := proxied(t)
	dir := testserver.Path(t)
	rw := newLock(t, m, dir)
	for name, do := range map[string]func(context.Context, func(context.Context) error) error{
		"Do": rw.Do, "Reader.Do": rw.Reader().Do,
	} {
		t.Run(name, func(t *testing.T) {
			held := func() bool { return rw.Held() || rw.Reader().Held() }
			for _, own := range []error{nil, errWork} {
				err := do(patient(t), func(ctx context.Context) error {
					if !held() {
						t.Error("not held inside")
					}
					return own
				})
				if !errors.Is(err, own) || held() {
					t.Errorf("error %v, held %v", err, held())
				}
				err = do(patient(t), func(ctx context.Context) error {
					expire(t, proxy, m)
					receive(t, "the end of the context", ctx.Done())
					wantErr(t, "cause", context.Cause(ctx), session.ErrLost)
					return own
				})
				wantErr(t, "the work of a lost lock", err, session.ErrLost)
				if own != nil {
					wantErr(t, "the work of a lost lock", err, own)
				}
			}
			func() {
				defer func() { _ = recover() }()
				_ = do(patient(t), func(context.Context) error { panic("boom") })
			}()
			if held() {
				t.Error("held after a panic")
			}
			wantErr(t, "Unlock", rw.Unlock(), rwlock.ErrNotHeld)
			wantErr(t, "RUnlock", rw.RUnlock(), rwlock.ErrNotHeld)
			testserver.WaitChildren(t, dir, 0)
		})
	}
}
