package rwlock_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
)

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
