package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// severalLocks returns locks below a path, and a MultiLock of them.
func severalLocks(t *testing.T, m *session.Manager, base string, n int) *zklock.MultiLock {
	t.Helper()
	var locks []zklock.ContextLocker
	for i := range n {
		locks = append(locks, newMutex(t, m, fmt.Sprintf("%s/n%d", base, i)))
	}
	return newMulti(t, locks...)
}

// A MultiLock of more locks than the session may have nodes is refused at once, asks the servers for nothing, and costs
// no place that is kept. A try looks before that. One of as many locks gets them.
func TestMultiBeyondRoom(t *testing.T) {
	const most = 8
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithMaxNodes(most))
	base := testserver.Path(t)
	kept := newMutex(t, m, base+"/kept", lazy)
	must(t, kept.Lock(patient(t)))
	must(t, kept.Unlock())
	fits, beyond := severalLocks(t, m, base+"/fits", most), severalLocks(t, m, base+"/beyond", most+1)
	before, listings := len(proxy.Requests()), proxy.Count(zktest.Any(zktest.OpSync, zktest.OpGetChildren2))
	wantErr(t, "Lock", beyond.Lock(patient(t)), session.ErrTooManyNodes)
	if n := proxy.Count(zktest.Any(zktest.OpSync, zktest.OpGetChildren2)); n != listings {
		t.Errorf("%d listings and syncs, %d before", n, listings)
	}
	_, err := beyond.TryLock(patient(t))
	wantErr(t, "TryLock", err, session.ErrTooManyNodes)
	for _, r := range proxy.Requests()[before:] {
		looks := r.Op == zktest.OpSync || r.Op == zktest.OpGetChildren2
		// The turn that was kept sets the watch on its own node when 5 ms are over.
		if r.Op != zktest.OpPing && !looks && !strings.HasPrefix(r.Path, base+"/kept/") {
			t.Errorf("a request was sent: %v", r)
		}
	}
	if n := len(testserver.Children(t, base+"/kept")); n != 1 {
		t.Errorf("%d places are kept, want one", n)
	}
	must(t, fits.Lock(patient(t)))
	wantErr(t, "Lock of a lock that keeps nothing now", kept.Lock(patient(t)), session.ErrTooManyNodes)
	must(t, fits.Unlock())
	must(t, kept.Lock(patient(t)))
	must(t, kept.Unlock())
}

// The session of a process that keeps the places of many locks is always full. A MultiLock gets its room beside goroutines
// that take what comes free, and they get theirs.
func TestMultiGetsRoomBesideOthers(t *testing.T) {
	const most, members, singly = 32, 16, 8
	m := testserver.Connect(t, testserver.Server(t).Addr(0), session.WithMaxNodes(most), session.WithTimeout(20*time.Second))
	base := testserver.Path(t)
	multi := severalLocks(t, m, base, members)
	one := func(name string) error {
		mx, err := zklock.New(m, base+"/"+name, lazy)
		if err != nil {
			return err
		}
		return mx.Do(patient(t), func(context.Context) error { return nil })
	}
	for i := range most {
		must(t, one(fmt.Sprint("full", i)))
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	taken := make(chan error, 1)
	for w := range singly {
		all.Go(func() {
			for i := 0; ; i++ {
				err := one(fmt.Sprint("single", w, "-", i))
				select {
				case <-stop:
					return
				case taken <- err:
				default:
				}
			}
		})
	}
	for range 5 {
		must(t, receive(t, "others to get locks", taken))
		must(t, multi.Lock(patient(t)))
		must(t, receive(t, "others to get locks beside it", taken))
		must(t, multi.Unlock())
	}
	close(stop)
	all.Wait()
}

// A caller gives up again and again, and asks anew at once. Its session may have one node, and the node of the call before
// is about to go.
func TestLockAgainAtLimit(t *testing.T) {
	for what, opts := range map[string][]zklock.Option{"plain": nil, "lazy": {lazy}, "handed over": {zklock.WithLocalHandover(2)}} {
		t.Run(what, func(t *testing.T) {
			dir := testserver.Path(t)
			holder := newMutex(t, connect(t), dir)
			must(t, holder.Lock(patient(t)))
			proxy := testserver.Proxy(t)
			mx := newMutex(t, testserver.Connect(t, proxy.Addr(), session.WithMaxNodes(1)), dir, opts...)
			for range 20 {
				ctx, cancel := context.WithCancel(patient(t))
				before := len(proxy.Requests())
				locking := background(func() error { return mx.Lock(ctx) })
				zktest.Eventually(t, testserver.Patience, "a request", func() bool {
					select {
					case err := <-locking:
						t.Fatalf("Lock: %v", err)
					default:
					}
					return len(proxy.Requests()) > before
				})
				cancel()
				wantErr(t, "Lock", receive(t, "the call to end", locking), context.Canceled)
			}
			must(t, holder.Unlock())
			must(t, mx.Lock(patient(t)))
			must(t, mx.Unlock())
		})
	}
}

// One goroutine takes locks of all kinds at random, one by one and two at a time, and gives them back. Its session may
// have two nodes, so no call is refused, although another process comes all the time. Nor is one of three goroutines that
// take one lock each, if there is room for three. (Locks that goroutines hand to each other can need less room than a
// MultiLock of them has reserved.)
func TestRandomAtLimit(t *testing.T) {
	for _, workers := range []int{1, 3} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(workers, " goroutines, seed ", seed), func(t *testing.T) { randomAtLimit(t, workers, seed) })
		}
	}
}

func randomAtLimit(t *testing.T, workers int, seed uint64) {
	base := testserver.Path(t)
	m := testserver.Connect(t, testserver.Server(t).Addr(0), session.WithMaxNodes(max(2, workers)), session.WithTimeout(20*time.Second))
	keep := zklock.WithLazyRelease([]time.Duration{2 * time.Millisecond, 50 * time.Millisecond, time.Minute}[seed])
	singles, multis := differentLocks(t, m, base, keep)
	if workers == 1 {
		singles = append(singles, multis...)
	}
	others, _ := differentLocks(t, connect(t), base, keep)
	turns := make(chan struct{}, 1) // of the other process
	var intruder, all sync.WaitGroup
	intruder.Go(func() {
		rng := rand.New(rand.NewPCG(seed, 0))
		for range turns {
			takeOne(t, rng, others)
		}
	})
	for w := range workers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(w)+1))
			for range longtest.Pick(40, 2000) {
				select {
				case turns <- struct{}{}:
				default:
				}
				takeOne(t, rng, singles)
			}
		})
	}
	all.Wait()
	close(turns)
	intruder.Wait()
}

// randomLock takes a lock, or tries to, and returns what gives it back.
type randomLock func(ctx context.Context, try bool) (release func(context.Context) error, err error)

func asRandom[L interface{ Release(context.Context) error }](l interface {
	Acquire(context.Context) (L, error)
	TryAcquire(context.Context) (L, error)
}) randomLock {
	return func(ctx context.Context, try bool) (func(context.Context) error, error) {
		take := l.Acquire
		if try {
			take = l.TryAcquire
		}
		held, err := take(ctx)
		return held.Release, err
	}
}

func differentLocks(t *testing.T, m *session.Manager, base string, keep zklock.Option) (singles, multis []randomLock) {
	t.Helper()
	a, b := newMutex(t, m, base+"/a", keep), newMutex(t, m, base+"/b", keep, zklock.WithLocalHandover(2))
	c := newMutex(t, m, base+"/c")
	rw, err := rwlock.New(m, base+"/r", rwlock.WithLazyRelease(time.Minute))
	must(t, err)
	s, err := semaphore.New(m, base+"/s", 2)
	must(t, err)
	for _, one := range []zklock.ContextLocker{a, b, c, rw, rw.Reader(), s} {
		singles = append(singles, asRandom[*queue.Lease](one))
	}
	for _, two := range [][]zklock.ContextLocker{{a, b}, {a, c}, {c, s}, {a, rw}, {rw.Reader(), s}, {b, rw.Reader()}} {
		multis = append(multis, asRandom[*zklock.MultiLease](newMulti(t, two...)))
	}
	return singles, multis
}

// takeOne takes one of the locks, or tries to, and gives it back.
func takeOne(t *testing.T, rng *rand.Rand, locks []randomLock) {
	i := rng.IntN(len(locks))
	release, err := locks[i](patient(t), rng.IntN(3) == 0)
	if err == nil {
		err = release(patient(t))
	}
	if err != nil && !errors.Is(err, queue.ErrBusy) {
		t.Errorf("lock %d: %v", i, err)
	}
}

// A Release hook takes another lock while a MultiLock is given back. The deletes do not wait for the hook, so their room is
// on its way, and the lock gets it.
func TestHookLocksDuringMultiRelease(t *testing.T) {
	var other *zklock.Mutex
	tried := make(chan error, 2)
	m := testserver.Connect(t, testserver.Server(t).Addr(0), session.WithMaxNodes(2), session.WithTrace(session.Trace{
		Release: func(ctx, _ context.Context, h session.HoldInfo) (context.Context, func(error)) {
			if h.Path != other.Path() {
				soon, cancel := context.WithTimeout(ctx, testserver.Patience)
				defer cancel()
				tried <- other.Do(soon, func(context.Context) error { return nil })
			}
			return ctx, nil
		},
	}))
	base := testserver.Path(t)
	other = newMutex(t, m, base+"/other")
	both := severalLocks(t, m, base, 2)
	must(t, both.Lock(patient(t)))
	must(t, both.Unlock())
	for range 2 {
		must(t, <-tried)
	}
}

// The waiters for a mutex of this process give up while they wait for room, and one asks anew at once.
func TestLockAgainInQueueForRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		m := connect(session.WithMaxNodes(1))
		other, mx := newMutex(t, m, "/other"), newMutex(t, m, "/mx", zklock.WithLocalHandover(2))
		must(t, other.Lock(t.Context()))
		leaving := server.HoldRequest(func(r zktest.Request) bool { return r.Op == zktest.OpDelete })
		unlocked := background(other.Unlock)
		<-leaving.Hit()
		for range 300 {
			var calls []<-chan error
			var cancels []context.CancelFunc
			for range 2 {
				ctx, cancel := context.WithCancel(t.Context())
				calls, cancels = append(calls, background(func() error { return mx.Lock(ctx) })), append(cancels, cancel)
				synctest.Wait()
			}
			for i, call := range calls {
				cancels[i]()
				wantErr(t, "Lock", <-call, context.Canceled)
			}
		}
		leaving.Release()
		must(t, <-unlocked)
		must(t, mx.Lock(t.Context()))
		must(t, mx.Unlock())
	})
}

// A hook that blocks at the end of a create does not delay the delete of the node, if nobody wants it any more, nor the
// waiters for its room.
func TestBlockedHookKeepsNoRoom(t *testing.T) {
	for what, opts := range map[string][]zklock.Option{"plain": nil, "lazy": {lazy}, "handed over": {zklock.WithLocalHandover(2)}} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
				block, blocked := make(chan struct{}), make(chan struct{}, 1)
				defer close(block)
				m := connect(session.WithMaxNodes(1), session.WithTrace(session.Trace{
					Request: func(ctx context.Context, i session.RequestInfo) (context.Context, func(error)) {
						if i.Op != "create" || !strings.HasPrefix(i.Path, "/first/") {
							return ctx, nil
						}
						return ctx, func(err error) {
							if err == nil {
								blocked <- struct{}{}
								<-block
							}
						}
					},
				}))
				first, second := newMutex(t, m, "/first", opts...), newMutex(t, m, "/second")
				ctx, cancel := context.WithCancel(t.Context())
				locking := background(func() error { return first.Lock(ctx) })
				<-blocked
				cancel()
				wantErr(t, "Lock", <-locking, context.Canceled)
				soon, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				must(t, second.Lock(soon))
			})
		})
	}
}

// The contender for all waiters of a mutex is just sending its create when the last waiter gives up. Its room is on its way
// for the next call.
func TestLockAgainDuringCreate(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		hook, proceed := make(chan struct{}), make(chan struct{})
		shared := false
		m := connect(session.WithMaxNodes(1), session.WithTrace(session.Trace{
			Request: func(ctx context.Context, i session.RequestInfo) (context.Context, func(error)) {
				if i.Op == "create" && strings.HasPrefix(i.Path, "/mx/") && shared {
					shared = false
					hook <- struct{}{}
					<-proceed
				}
				return ctx, nil
			},
		}))
		other, mx := newMutex(t, m, "/other"), newMutex(t, m, "/mx", zklock.WithLocalHandover(2))
		must(t, other.Lock(t.Context()))
		leaving := server.HoldRequest(func(r zktest.Request) bool { return r.Op == zktest.OpDelete })
		unlocked := background(other.Unlock)
		<-leaving.Hit()
		ctx, cancel := context.WithCancel(t.Context())
		first := background(func() error { return mx.Lock(ctx) })
		synctest.Wait()
		ctx2, cancel2 := context.WithCancel(t.Context())
		second := background(func() error { return mx.Lock(ctx2) })
		synctest.Wait()
		cancel() // the second gets a contender of its own
		wantErr(t, "Lock", <-first, context.Canceled)
		shared = true
		leaving.Release()
		must(t, <-unlocked)
		<-hook
		cancel2()
		wantErr(t, "Lock", <-second, context.Canceled)
		third := background(func() error { return mx.Lock(t.Context()) })
		synctest.Wait()
		close(proceed)
		must(t, <-third)
		must(t, mx.Unlock())
	})
}

// The room of a MultiLock is not on its way as long as the MultiLock waits, whichever contender has reserved it: here the
// one that all goroutines share which wait for the first lock.
func TestMultiKeepsRoomOfSharedContender(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
		m := connect(session.WithMaxNodes(3))
		shared, other := newMutex(t, m, "/a", zklock.WithLocalHandover(1)), newMutex(t, m, "/b")
		must(t, other.Lock(t.Context()))
		locking := background(lockBehindTurn(t, shared, newMutex(t, m, "/b")))
		synctest.Wait()
		must(t, shared.Unlock())
		synctest.Wait() // the MultiLock has the first lock, and a place behind the holder of the second
		soon, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantErr(t, "Lock of the holder", newMutex(t, m, "/c").Lock(soon), session.ErrTooManyNodes)
		must(t, other.Unlock())
		must(t, <-locking)
	})
}

// A MultiLock comes to a lock of which this process has the last hold of a turn. The node of that turn makes room for the
// next one, as it does for a Lock of that mutex alone.
func TestMultiBehindTurnAtLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
		m := connect(session.WithMaxNodes(2))
		shared := newMutex(t, m, "/b", zklock.WithLocalHandover(1))
		locking := background(lockBehindTurn(t, shared, newMutex(t, m, "/a")))
		synctest.Wait()
		must(t, shared.Unlock())
		must(t, <-locking)
	})
}

// lockBehindTurn takes the last hold of a turn of a mutex that hands over once, and returns a function that locks a
// MultiLock of it and another lock.
func lockBehindTurn(t *testing.T, shared, other *zklock.Mutex) func() error {
	t.Helper()
	must(t, shared.Lock(t.Context()))
	next := background(func() error { return shared.Lock(t.Context()) })
	synctest.Wait()
	must(t, shared.Unlock())
	must(t, <-next)
	both := newMulti(t, shared, other)
	return func() error { return both.Lock(t.Context()) }
}
