package lockz_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// theirs is the data of a node of another process.
const theirs = `{"id":"web-3/4711","label":"theirs","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`

// theyHold has another process hold a lock.
func (t *world) theyHold(path string, kind *queue.Kind) {
	t.Helper()
	lock(t, newContender(t, t.other, path, kind, theirs), "")
}

// campaigns begins to campaign, and returns when the candidate has its place.
func (t *world) campaigns(m *session.Manager, opts ...election.Option) {
	t.Helper()
	e, err := election.New(m, "/a", opts...)
	must(t, err)
	begin(t, func(ctx context.Context) error {
		return e.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
	})
	synctest.Wait()
}

// scenes are what happens, and what our page shows then.
var scenes = []struct {
	name string
	play func(t *world)
	want []string
}{
	{"nothing", func(*world) {}, nil},
	{"a mutex, held and waited for", func(t *world) {
		t.theyHold("/a", queue.Mutex())
		lock(t, mutex(t, t.us, "/b"), "ours")
		t.wait(mutex(t, t.us, "/a"), "first")
		t.wait(mutex(t, t.us, "/a"), "second")
	}, []string{
		"holds mutex /b ours",
		`waits mutex /a first, 1 ahead, behind "theirs" here=false`,
		`waits mutex /a second, 2 ahead, behind "theirs" here=false`,
	}},
	{"a read-write lock", func(t *world) {
		ours := newRW(t, t.us, "/a")
		t.theyHold("/a", queue.Reader())
		lock(t, ours.Reader(), "first")
		lock(t, ours.Reader(), "second")
		t.wait(ours, "third")
		t.wait(ours.Reader(), "fourth")
	}, []string{
		"holds read /a first",
		"holds read /a second",
		`waits write /a third, 3 ahead, behind "second" here=true`,
		`waits read /a fourth, 1 ahead, behind "third" here=true`,
	}},
	{"a writer that goes on as a reader", func(t *world) {
		rw, ctx := newRW(t, t.us, "/a"), labelled(queue.WithOwner(t.Context()), "ours")
		must(t, rw.Lock(ctx))
		must(t, rw.RLock(ctx))
		t.wait(newRW(t, t.other, "/a").Reader(), "")
		must(t, rw.Unlock())
	}, []string{"holds read /a ours"}},
	{"leases of a semaphore", func(t *world) {
		sem := newSem(t, t.us, "/a", 5)
		lock(t, newSem(t, t.other, "/a", 5), "theirs")
		_, err := sem.AcquireN(labelled(t.Context(), "ours"), 3)
		must(t, err)
		begin(t, func(ctx context.Context) error {
			_, err := sem.AcquireN(labelled(ctx, "two"), 2)
			return err
		})
	}, []string{
		"holds semaphore /a x3 ours",
		`waits semaphore /a x2 two, 2 ahead, behind "theirs" here=false`,
	}},
	{"a semaphore in Curator's layout", func(t *world) {
		lease := lock(t, newSem(t, t.other, "/a", 1, semaphore.WithCuratorLayout()), "")
		s, err := t.other.Session(t.Context())
		must(t, err)
		_, err = s.Set(t.Context(), lease.Path(), []byte(theirs), -1)
		must(t, err)
		t.wait(newSem(t, t.us, "/a", 1, semaphore.WithCuratorLayout()), "first")
		t.wait(newSem(t, t.us, "/a", 1, semaphore.WithCuratorLayout()), "second")
	}, []string{
		"holds gate /a/locks first",
		`waits semaphore /a/leases first, 1 ahead, behind "theirs" here=false`,
		`waits gate /a/locks second, 1 ahead, behind "first" here=true`,
	}},
	{"goroutines that hand a lock on", func(t *world) {
		mx := mutex(t, t.us, "/a", zklock.WithLocalHandover(10))
		lock(t, mx, "ours")
		t.wait(mx, "first")
		t.wait(mx, "second")
	}, []string{
		"holds mutex /a ours",
		"waits mutex /a first, 1 in this process",
		"waits mutex /a second, 2 in this process",
	}},
	{"goroutines that share a place in the queue", func(t *world) {
		t.theyHold("/a", queue.Mutex())
		mx := mutex(t, t.us, "/a", zklock.WithLocalHandover(10))
		t.wait(mx, "first")
		t.wait(mx, "second")
	}, []string{
		`waits mutex /a first, 1 ahead, behind "theirs" here=false`,
		`waits mutex /a second, 1 ahead, behind "theirs" here=false, 1 in this process`,
	}},
	{"goroutines that share a place, without the first", func(t *world) {
		t.theyHold("/a", queue.Mutex())
		mx := mutex(t, t.us, "/a", zklock.WithLocalHandover(10))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = mx.Acquire(labelled(ctx, "first")) }()
		synctest.Wait()
		t.wait(mx, "second")
		cancel()
	}, []string{
		`waits mutex /a second, 1 ahead, behind "theirs" here=false`,
	}},
	{"several locks, all or none", func(t *world) {
		t.theyHold("/b", queue.Mutex())
		all, err := zklock.Multi(mutex(t, t.us, "/c"), mutex(t, t.us, "/b"), mutex(t, t.us, "/a"))
		must(t, err)
		begin(t, func(ctx context.Context) error {
			_, err := all.Acquire(labelled(ctx, "all"))
			return err
		})
	}, []string{
		"holds mutex /a all",
		`waits mutex /b all, 1 ahead, behind "theirs" here=false`,
		"waits mutex /c all",
	}},
	{"a candidate behind the leader", func(t *world) {
		t.campaigns(t.other, election.WithID("10.0.0.7:8080"))
		t.campaigns(t.us)
	}, []string{
		`waits election /a, 1 ahead, behind "10.0.0.7:8080" here=false`,
		"election /a, leader 10.0.0.7:8080",
	}},
	{"a candidate behind a leader without an id of its own", func(t *world) {
		t.campaigns(t.other)
		t.campaigns(t.us)
	}, []string{
		fmt.Sprintf(`waits election /a, 1 ahead, behind %q here=false`, queue.Identity()),
		"election /a, leader " + queue.Identity(),
	}},
	{"a leader", func(t *world) { t.campaigns(t.us) }, []string{"holds election /a", "election /a, leader this process"}},
	{"a hold inside a hold, and locks that are over", func(t *world) {
		begin(t, func(ctx context.Context) error {
			return mutex(t, t.us, "/a").Do(labelled(ctx, "outer"), func(ctx context.Context) error {
				return mutex(t, t.us, "/b").Do(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
			})
		})
		synctest.Wait()
		must(t, mutex(t, t.us, "/c").Lock(t.Context()))
		ok, err := mutex(t, t.us, "/a").TryLock(t.Context())
		if ok || err != nil {
			t.Error(ok, err)
		}
		over, cancel := context.WithCancel(t.Context())
		go func() { _ = mutex(t, t.us, "/a").Lock(over) }()
		synctest.Wait()
		cancel()
	}, []string{"holds mutex /a outer", "holds mutex /b outer", "holds mutex /c"}},
}

// The page shows each kind of lock as it is held and waited for, and in which order.
func TestKinds(t *testing.T) {
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			inBubble(t, func(t *world) {
				s.play(t)
				synctest.Wait()
				time.Sleep(known)
				t.shows(s.want...)
			})
		})
	}
}

// A contender is of this process if its session is that of a manager of the page, and not if its node only has the same host
// name and process id. Processes in several containers often have the same ones.
func TestHere(t *testing.T) {
	for _, here := range []bool{false, true} {
		inBubble(t, func(t *world) {
			if here {
				t.page = lockz.Handler(t.us, t.other)
			}
			lock(t, mutex(t, t.other, "/a"), "")
			t.wait(mutex(t, t.us, "/a"), "")
			time.Sleep(known)
			t.shows(fmt.Sprintf("waits mutex /a, 1 ahead, behind %q here=%v", queue.Identity(), here))
		})
	}
}

// A manager that is closed has no session in this process, although it may be reachable. Servers of two
// ensembles can give two sessions the same id.
func TestClosedIsNotHere(t *testing.T) {
	var closed *world
	inBubble(t, func(t *world) { closed = t })
	inBubble(t, func(t *world) {
		t.theyHold("/a", queue.Mutex())
		t.wait(mutex(t, t.us, "/a"), "first")
		time.Sleep(known)
		t.shows(`waits mutex /a first, 1 ahead, behind "theirs" here=false`)
	})
	runtime.KeepAlive(closed)
}

// Several managers are shown in order, each once. Several handlers of a manager show the same, and a hold once.
func TestSeveralManagersAndHandlers(t *testing.T) {
	inBubble(t, func(t *world) {
		lock(t, mutex(t, t.us, "/a"), "")
		both := lockz.Handler(t.other, t.us, t.other)
		lock(t, mutex(t, t.other, "/b"), "")
		t.shows("holds mutex /a")
		managers := pageOf(t, both).Managers
		if len(managers) != 2 || lines(managers[0])[0] != "holds mutex /b" || lines(managers[1])[0] != "holds mutex /a" {
			t.Errorf("both: %+v", managers)
		}
	})
}

// Nothing that a node's data has beside the id, the label and the traceparent of a contender is on the page: not in a
// hold, a wait or a loss. That no password is there is a test of internal/tests/conformance/security.
func TestDataIsNotShown(t *testing.T) {
	const data = "plover-27182"
	inBubble(t, func(t *world) {
		var shown []string
		show := func() {
			synctest.Wait()
			shown = append(shown, get(t.page, "?format=html", "").Body.String(), get(t.page, "?format=json", "").Body.String())
		}
		for i, text := range []string{`{"id":"web-3/4711","password":"` + data + `"}`, strings.Repeat("a", 256) + data, data + "\n"} {
			path := fmt.Sprint("/", i)
			lock(t, newContender(t, t.us, path, queue.Mutex(), text), "")
			t.wait(mutex(t, t.us, path), "")
		}
		time.Sleep(known)
		if behind := t.now().Waits[2].Behind; behind == nil || !behind.Here {
			t.Errorf("the waiters have not read the data: %+v", behind)
		}
		show()
		t.expire(t.us)
		time.Sleep(time.Second)
		show()
		if n := t.now().LossCount; n != 3 {
			t.Errorf("%d losses", n)
		}
		if all := strings.Join(shown, ""); !strings.Contains(all, "web-3/4711") || strings.Contains(all, data) {
			t.Errorf("the id is shown: %v, the data: %v", strings.Contains(all, "web-3/4711"), strings.Contains(all, data))
		}
	})
}
