package rwlock_test

import (
	"context"
	"log/slog"
	"path"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	rwlock "github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The turn of a writer that becomes a reader is not handed over, although a writer of the same process waits for it: that one
// comes after the reader. This holds from the moment at which the downgrade begins. Nor is the turn kept.
func TestDowngradeHandsNothingOver(t *testing.T) {
	for name, meanwhile := range map[string]bool{"unlocked after the downgrade": false, "unlocked during the downgrade": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testDowngradeHandsNothingOver(t, meanwhile) })
		})
	}
}

func testDowngradeHandsNothingOver(t *testing.T, meanwhile bool) {
	server := zktest.Start(t)
	m, err := session.Connect(t.Context(), "zookeeper:2181", session.WithDialer(server.Dialer()),
		session.WithTimeout(10*time.Second), session.WithLogger(slog.New(slog.DiscardHandler)))
	expect.NoError(t, err)
	defer func() { _ = m.Close() }()
	rw, err := rwlock.New(m, "/prices", rwlock.WithLazyRelease(5*time.Second))
	expect.NoError(t, err)
	owner := queue.WithOwner(t.Context())
	expect.NoError(t, rw.Lock(owner))
	next := make(chan error, 1)
	go func() { next <- rw.Lock(t.Context()) }()
	time.Sleep(time.Second) // the writer's node has its own watch, and its token is known
	create := server.HoldRequest(zktest.On(zktest.OpCreate, "/prices"))
	read := make(chan error, 1)
	go func() { read <- rw.RLock(owner) }()
	<-create.Hit()
	unlocked := make(chan error, 1)
	if meanwhile {
		go func() { unlocked <- rw.Unlock() }()
		synctest.Wait()
	}
	create.Release()
	expect.NoError(t, expect.Receive(t, "the reader", read))
	if !meanwhile {
		unlocked <- rw.Unlock()
	}
	expect.NoError(t, expect.Receive(t, "Unlock", unlocked))
	synctest.Wait()
	if rw.Held() || !rw.Reader().Held() || len(next) > 0 {
		t.Errorf("held: write %v, read %v", rw.Held(), rw.Reader().Held())
	}
	expect.NoError(t, rw.RUnlock())
	expect.NoError(t, expect.Receive(t, "the next writer", next))
	expect.NoError(t, rw.Unlock())

	time.Sleep(time.Minute) // until nothing is kept
	expect.NoError(t, rw.Lock(owner))
	expect.NoError(t, rw.RLock(owner))
	expect.NoError(t, rw.Unlock())
	expect.NoError(t, rw.RUnlock())
	if all, err := rw.Contenders(t.Context()); len(all) > 0 {
		t.Errorf("kept: %+v, %v", all, err)
	}
}

// unlocker is the context of an owner. It unlocks something when the owner is looked up for the last time in n.
type unlocker struct {
	context.Context
	n      int
	unlock func()
}

func (u *unlocker) Value(key any) any {
	v := u.Context.Value(key)
	if _, ok := v.(*queue.Owner); ok {
		if u.n--; u.n == 0 {
			u.unlock()
		}
	}
	return v
}

// Another goroutine of the owner unlocks the write lock while Lock begins, which would have entered it again. The owner still
// holds the read lock then, and Lock does not wait for that.
func TestUpgradeRefusedAfterUnlock(t *testing.T) {
	m := testserver.Connect(t, testserver.Server(t).Addr(0), session.WithTimeout(testserver.Patience))
	rw, err := rwlock.New(m, testserver.Path(t))
	expect.NoError(t, err)
	owner := queue.WithOwner(expect.Patient(t))
	expect.NoError(t, rw.Lock(owner))
	expect.NoError(t, rw.RLock(owner))
	ctx := &unlocker{owner, 1, func() { expect.NoError(t, rw.Unlock()) }}
	expect.Match(t, "Lock", rw.Lock(ctx), rwlock.ErrUpgrade)
	if rw.Held() || ctx.n > 0 {
		t.Errorf("held: %v; %d more looks", rw.Held(), ctx.n)
	}
	expect.NoError(t, rw.RUnlock())
}

// A place that one side of a lock keeps is given up before the other side sends anything: to wait for the event would take
// a round trip.
func TestKeptPlaceOfTheOtherSide(t *testing.T) {
	for name, sides := range map[string]func(rw *rwlock.RWMutex) (keeps, comes locker){
		"a writer comes": func(rw *rwlock.RWMutex) (keeps, comes locker) { return rw.Reader(), rw },
		"a reader comes": func(rw *rwlock.RWMutex) (keeps, comes locker) { return rw, rw.Reader() },
	} {
		t.Run(name, func(t *testing.T) {
			proxy := testserver.Proxy(t)
			m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(testserver.Patience))
			dir := testserver.Path(t)
			_, err := testserver.Admin(t).Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
			expect.NoError(t, err)
			rw, err := rwlock.New(m, dir, rwlock.WithLazyRelease(time.Minute))
			expect.NoError(t, err)
			keeps, comes := sides(rw)
			ctx := expect.Patient(t)
			expect.NoError(t, keeps.Lock(ctx))
			expect.NoError(t, keeps.Unlock())
			kept := testserver.Children(t, dir)
			if len(kept) != 1 {
				t.Fatalf("kept: %v", kept)
			}
			proxy.ResetRequests()
			expect.NoError(t, comes.Lock(ctx))
			all := slices.DeleteFunc(proxy.Requests(), func(r zktest.Request) bool {
				return r.Op != zktest.OpCreate && r.Op != zktest.OpDelete || path.Dir(r.Path) != dir
			})
			if len(all) != 2 || all[0].Op != zktest.OpDelete || all[0].Path != dir+"/"+kept[0] {
				t.Errorf("requests: %+v", all)
			}
			expect.NoError(t, comes.Unlock())
		})
	}
}

type locker interface {
	Lock(ctx context.Context) error
	Unlock() error
}
