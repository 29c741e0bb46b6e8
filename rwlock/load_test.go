package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// protected is the resource under the lock. It checks the lock without ZooKeeper: it counts the holders, and has two
// numbers that a writer changes one after the other. The fields are atomics only because the race detector does not
// know the order that another process makes.
type protected struct {
	readers, writers atomic.Int32
	most             atomic.Int32 // readers at the same time
	a, b             atomic.Int64
}

func (p *protected) write(t *testing.T, work func() error) error {
	defer p.writers.Add(-1)
	if w, r := p.writers.Add(1), p.readers.Load(); w != 1 || r != 0 {
		t.Errorf("a writer inside with %d more and %d readers", w-1, r)
	}
	p.a.Store(p.a.Load() + 1)
	err := work()
	p.b.Store(p.b.Load() + 1)
	return err
}

func (p *protected) read(t *testing.T, work func() error) error {
	defer p.readers.Add(-1)
	n := p.readers.Add(1)
	for old := p.most.Load(); n > old && !p.most.CompareAndSwap(old, n); old = p.most.Load() {
	}
	if w := p.writers.Load(); w != 0 {
		t.Errorf("a reader inside with %d writers", w)
	}
	a := p.a.Load()
	err := work()
	if b := p.b.Load(); a != b || a != p.a.Load() {
		t.Errorf("a reader has seen %d and %d", a, b)
	}
	return err
}

// Ten sessions lock in all ways, nine times to read for each time to write. Readers share the lock, writers hold it
// alone, and no write is lost.
func TestLoad(t *testing.T) {
	const sessions, times = 10, 30
	ctx := patient(t)
	dir := testserver.Path(t)
	var p protected
	var g errgroup.Group
	for i := range sessions {
		m := connect(t)
		rw := newLock(t, m, dir)
		// Each holder sends a request, so that other contenders come in the meantime.
		work := func() error {
			s, err := m.Session(ctx)
			if err == nil {
				_, err = s.Exists(ctx, "/")
			}
			return err
		}
		g.Go(func() error {
			for n := range times {
				once := readOnce
				if (n+i)%10 == 0 {
					once = writeOnce
				}
				if err := once(ctx, t, rw, &p, n, work); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(t, g.Wait())
	if a, b := p.a.Load(), p.b.Load(); a != sessions*times/10 || a != b {
		t.Errorf("%d and %d after %d writes", a, b, sessions*times/10)
	}
	if p.most.Load() < 2 {
		t.Error("never more than one reader inside")
	}
	t.Logf("up to %d readers inside at once", p.most.Load())
	testserver.WaitChildren(t, dir, 0)
}

func readOnce(ctx context.Context, t *testing.T, rw *rwlock.RWMutex, p *protected, way int, work func() error) error {
	switch way % 3 {
	case 0:
		return rw.Reader().Do(ctx, func(context.Context) error { return p.read(t, work) })
	case 1:
		if err := rw.RLock(ctx); err != nil {
			return err
		}
		return errors.Join(p.read(t, work), rw.RUnlock())
	default:
		l, err := rw.Reader().Acquire(ctx)
		if err != nil {
			return err
		}
		return errors.Join(p.read(t, work), l.Release(ctx))
	}
}

func writeOnce(ctx context.Context, t *testing.T, rw *rwlock.RWMutex, p *protected, way int, work func() error) error {
	switch way % 3 {
	case 0:
		return rw.Do(ctx, func(context.Context) error { return p.write(t, work) })
	case 1: // and read on
		owner := queue.WithOwner(ctx)
		if err := rw.Lock(owner); err != nil {
			return err
		}
		err := p.write(t, work)
		if err := errors.Join(err, rw.RLock(owner)); err != nil {
			return errors.Join(err, rw.Unlock())
		}
		a := p.a.Load()
		err = p.read(t, rw.Unlock)
		if now := p.a.Load(); now != a {
			t.Errorf("%d writes during a downgrade", now-a)
		}
		return errors.Join(err, p.read(t, work), rw.RUnlock())
	default:
		l, err := rw.Acquire(ctx)
		if err != nil {
			return err
		}
		return errors.Join(p.write(t, work), l.Release(ctx))
	}
}

// referee checks that two holds that exclude each other never report held at the same moment.
type referee struct {
	mu     sync.Mutex
	claims []*claim
	fouls  []string
	most   int // readers at once
}

// claim is one hold.
type claim struct {
	name  string
	write bool
	held  func() bool
	over  bool // given up; guarded by referee.mu
}

// enter adds a hold as soon as it is granted. It asks each earlier hold whether it is held, and then the new one. If
// both say so, the two were held at the same time.
func (r *referee) enter(c *claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	with := []*claim{c}
	for _, other := range r.claims {
		if other.over || !other.held() || !c.held() {
			continue
		}
		with = append(with, other)
		if c.write || other.write {
			r.fouls = append(r.fouls, fmt.Sprintf("%s was granted while %s was held", c.name, other.name))
		}
	}
	r.most = max(r.most, len(with))
	r.claims = append(slices.DeleteFunc(r.claims, func(c *claim) bool { return c.over }), c)
}

// leave is called before a hold is given up.
func (r *referee) leave(c *claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.over = true
}

// Under load, connections are cut at random places, and some sessions are cut off until they are lost. A writer's hold
// is never held together with another, downgraded or not, and all clients go on.
func TestLoadWithFaults(t *testing.T) {
	longtest.Only(t)
	const sessions, cuts, partitions = 6, 25, 3
	ctx, cancel := context.WithTimeout(context.Background(), 15*testserver.Patience) // goesRound notices earlier that clients hang
	defer cancel()
	dir := testserver.Path(t)
	var r referee
	var granted atomic.Int64
	stop := make(chan struct{})
	var g errgroup.Group
	var proxies []*zktest.Proxy
	for i := range sessions {
		timeout := long
		if i == 0 { // can be cut off without much waiting
			timeout = session.WithTimeout(time.Second)
		}
		m, proxy := proxied(t, timeout)
		proxies = append(proxies, proxy)
		c := &client{t: t, m: m, rw: newLock(t, m, dir), r: &r}
		g.Go(func() error {
			for {
				select {
				case <-stop:
					return nil
				default:
				}
				err := c.once(ctx)
				if err != nil && !errors.Is(err, session.ErrLost) {
					return err
				}
				granted.Add(1)
			}
		})
	}
	goesRound := func() {
		before := granted.Load()
		zktest.Eventually(t, 2*testserver.Patience, "the lock to go round", func() bool {
			return granted.Load() > before+2*sessions
		})
	}
	for range cuts {
		p := proxies[rand.N(sessions)]
		switch rand.N(3) {
		case 0:
			p.Disconnect()
		case 1:
			p.CutAfterCommit(zktest.On(zktest.OpCreate, dir))
		default:
			p.CutAfterCommit(zktest.Any(zktest.OpNotification))
		}
		goesRound()
	}
	for range partitions {
		proxies[0].Blackhole(zktest.Both)
		goesRound() // after its session has ended, if it held the lock or waited
		proxies[0].Heal()
		goesRound()
	}
	close(stop)
	must(t, g.Wait())
	for _, f := range r.fouls {
		t.Error(f)
	}
	t.Logf("%d grants, up to %d readers at once", granted.Load(), r.most)
	testserver.WaitChildren(t, dir, 0)
}

// client is one client of the load, with a lock object of its own.
type client struct {
	t  *testing.T
	m  *session.Manager
	rw *rwlock.RWMutex
	r  *referee
}

// once takes the lock in one way, and does some work.
func (c *client) once(ctx context.Context) error {
	switch n := rand.N(10); {
	case n < 6:
		return c.lease(ctx, false, c.rw.Reader().Acquire)
	case n < 8:
		return c.lease(ctx, true, c.rw.Acquire)
	}
	owner := queue.WithOwner(ctx)
	if err := c.rw.Lock(owner); err != nil {
		return err
	}
	c.hold(ctx, "a writer", true, c.rw.Held)
	if err := c.rw.RLock(owner); err != nil {
		return errors.Join(err, c.rw.Unlock())
	}
	err := c.rw.Unlock()
	c.hold(ctx, "one who was a writer", false, c.rw.Reader().Held)
	return errors.Join(err, c.rw.RUnlock())
}

func (c *client) lease(ctx context.Context, write bool, get func(context.Context) (*queue.Lease, error)) error {
	l, err := get(ctx)
	if err != nil {
		return err
	}
	c.hold(ctx, path.Base(l.Path()), write, func() bool { return l.Err() == nil })
	return l.Release(ctx)
}

// hold sends a request while the lock is held, so that other contenders come in the meantime.
func (c *client) hold(ctx context.Context, name string, write bool, held func() bool) {
	hold := &claim{name: name, write: write, held: held}
	c.r.enter(hold)
	defer c.r.leave(hold)
	if s, err := c.m.Session(ctx); err == nil {
		_, _ = s.Exists(ctx, "/") // may fail because of the faults
	}
}

// A holder that is cut off knows of its loss before a contender that it kept out gets the lock. The holder is a writer,
// a reader, or a writer that has become a reader.
func TestPartitionedHolderKnowsFirst(t *testing.T) {
	longtest.Only(t)
	for name, tt := range map[string]struct {
		cut    zktest.Direction
		rivals string
		lock   func(ctx context.Context, rw *rwlock.RWMutex) error
	}{
		"a writer":              {zktest.Both, "RRR", func(ctx context.Context, rw *rwlock.RWMutex) error { return rw.Lock(ctx) }},
		"a reader":              {zktest.ToServer, "W", func(ctx context.Context, rw *rwlock.RWMutex) error { return rw.RLock(ctx) }},
		"one who was a writer":  {zktest.ToClient, "W", downgraded},
		"one who is both still": {zktest.Both, "WR", func(ctx context.Context, rw *rwlock.RWMutex) error { return errors.Join(rw.Lock(ctx), rw.RLock(ctx)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testPartition(t, tt.cut, tt.lock, tt.rivals)
		})
	}
}

func downgraded(ctx context.Context, rw *rwlock.RWMutex) error {
	return rw.Do(ctx, rw.RLock)
}

func testPartition(t *testing.T, cut zktest.Direction, lock func(context.Context, *rwlock.RWMutex) error, rivals string) {
	dir := testserver.Path(t)
	m, proxy := proxied(t, session.WithTimeout(time.Second))
	holder := newLock(t, m, dir)
	// On a busy machine a session of a second can be lost before it is cut off.
	zktest.Eventually(t, testserver.Patience, "the holder to hold", func() bool {
		err := lock(queue.WithOwner(patient(t)), holder)
		if err != nil { // give back what it has taken
			for errors.Is(holder.Unlock(), session.ErrLost) || errors.Is(holder.RUnlock(), session.ErrLost) {
			}
		}
		return err == nil
	})
	others := connect(t)
	var entered []<-chan error
	for _, kind := range strings.Split(rivals, "") {
		rw := newLock(t, others, dir)
		ctx := patient(t)
		entered = append(entered, background(func() error {
			l, err := acquire(rw, kind)(ctx)
			// Ask the former holder before anything else is done with the lock.
			if holder.Held() || holder.Reader().Held() {
				err = errors.Join(err, errors.New("a rival got in while the holder still held"))
			}
			if err != nil {
				return err
			}
			return l.Release(ctx)
		}))
	}
	proxy.Blackhole(cut)
	for _, ch := range entered {
		must(t, receive(t, "a rival", ch))
	}
}

// A call that is cancelled at any moment leaves neither node nor watch, and does not keep out the contenders behind it.
func TestCancelLeavesNothing(t *testing.T) {
	const tries = 60
	for _, holds := range []string{"W", "R"} {
		t.Run("behind "+holds, func(t *testing.T) {
			dir := persistentDir(t)
			holder, err := acquire(newLock(t, connect(t), dir), holds)(patient(t))
			must(t, err)
			_, err = holder.Token(patient(t)) // its own watch is set by now
			must(t, err)
			m := connect(t)
			rw := newLock(t, m, dir)
			var g errgroup.Group
			g.SetLimit(8)
			for i := range tries {
				g.Go(func() error {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.N(15))*time.Millisecond)
					defer cancel()
					lock, unlock := rw.Lock, rw.Unlock
					if i%3 == 0 {
						lock, unlock = rw.RLock, rw.RUnlock
					}
					err := lock(ctx)
					switch {
					case err == nil && holds == "R" && i%3 == 0:
						return unlock()
					case !errors.Is(err, context.DeadlineExceeded):
						return errors.Join(errors.New("Lock behind a holder"), err)
					}
					return nil
				})
			}
			must(t, g.Wait())
			testserver.WaitChildren(t, dir, 1)
			must(t, holder.Err())
			must(t, holder.Release(patient(t)))
			zktest.Eventually(t, testserver.Patience, "no watch", func() bool { return len(watched(t, nil, dir)) == 0 })
			must(t, rw.Lock(patient(t)))
			must(t, rw.Unlock())
		})
	}
}

// A downgrade that is cancelled returns at once and leaves nothing behind. The write lock stays held.
func TestCancelDowngrade(t *testing.T) {
	dir := persistentDir(t)
	m, proxy := proxied(t)
	rw := newLock(t, m, dir)
	owner, cancel := context.WithCancel(queue.WithOwner(patient(t)))
	defer cancel()
	must(t, rw.Lock(owner))
	hold := proxy.HoldRequest(zktest.On(zktest.OpCreate, dir))
	read := background(func() error { return rw.RLock(owner) })
	receive(t, "the create", hold.Hit())
	cancel()
	wantErr(t, "RLock", receive(t, "RLock", read), context.Canceled)
	hold.Release()
	wantErr(t, "RUnlock", rw.RUnlock(), rwlock.ErrNotHeld)
	must(t, rw.Unlock()) // after it, the server has had all earlier requests
	testserver.WaitChildren(t, dir, 0)
}
