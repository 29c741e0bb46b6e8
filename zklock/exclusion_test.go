package zklock_test

import (
	"context"
	"path"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zklock"
)

// The protected resource checks the lock without ZooKeeper: it counts the holders, and loses an increment
// when there are two. Its fields are atomics only because the race detector does not know the order that
// another process makes.
type protected struct {
	inside  atomic.Int32
	counter atomic.Int64

	mu     sync.Mutex
	grants []int32 // sequence numbers, in the order of the grants
}

// use is called under the lock. sequence is that of the node, or negative if it is not known.
func (p *protected) use(t *testing.T, sequence int32) {
	if n := p.inside.Add(1); n != 1 {
		t.Errorf("%d inside at once", n)
	}
	v := p.counter.Load()
	runtime.Gosched()
	p.counter.Store(v + 1)
	if sequence >= 0 {
		p.mu.Lock()
		p.grants = append(p.grants, sequence)
		p.mu.Unlock()
	}
	p.inside.Add(-1)
}

func sequenceOf(t *testing.T, l *queue.Lease) int32 {
	n, ok := queue.ParseNode(path.Base(l.Path()))
	if !ok {
		t.Errorf("%s is no contender", l.Path())
	}
	return n.Sequence
}

// Eight processes take the lock many times each, half of them with Acquire and half with Lock and
// Unlock. One process holds the lock at a time, in the order of the sequence numbers.
func TestMutualExclusionAndOrder(t *testing.T) {
	const processes = 8
	times := longtest.Pick(50, 200)
	dir := testserver.Path(t)
	// A directory that stays, so that the numbers never start again.
	if _, err := testserver.Admin(t).Create(dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	var p protected
	var g errgroup.Group
	ctx := context.Background()
	for i := range processes {
		mx := newMutex(t, connect(t), dir)
		once := func() error { return byLock(ctx, t, mx, &p) }
		if i%2 == 0 {
			once = func() error { return byHandle(ctx, t, mx, &p) }
		}
		g.Go(func() error {
			for range times {
				if err := once(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(t, g.Wait())
	if got := p.counter.Load(); got != int64(processes*times) {
		t.Errorf("counter is %d after %d increments under the lock", got, processes*times)
	}
	if len(p.grants) != processes/2*times {
		t.Errorf("%d grants noted, want %d", len(p.grants), processes/2*times)
	}
	for i := 1; i < len(p.grants); i++ {
		if p.grants[i-1] >= p.grants[i] {
			t.Fatalf("sequence %d got in before %d", p.grants[i-1], p.grants[i])
		}
	}
	testserver.WaitChildren(t, dir, 0)
}

func byLock(ctx context.Context, t *testing.T, mx *zklock.Mutex, p *protected) error {
	if err := mx.Lock(ctx); err != nil {
		return err
	}
	p.use(t, -1)
	return mx.Unlock()
}

func byHandle(ctx context.Context, t *testing.T, mx *zklock.Mutex, p *protected) error {
	l, err := mx.Acquire(ctx)
	if err != nil {
		return err
	}
	p.use(t, sequenceOf(t, l))
	return l.Release(ctx)
}

// Waiters of different processes, which enter the queue one after another, get the lock in that order.
func TestFirstComeFirstServed(t *testing.T) {
	const waiters = 6
	ctx := patient(t)
	dir := testserver.Path(t)
	holder := newMutex(t, connect(t), dir)
	must(t, holder.Lock(ctx))
	entered := make(chan int, waiters)
	var wg sync.WaitGroup
	for i := range waiters {
		mx := newMutex(t, connect(t), dir)
		wg.Go(func() {
			if err := mx.Lock(ctx); err != nil {
				t.Error(err)
			}
			entered <- i // before Unlock, so that the order is that of the holds
			if err := mx.Unlock(); err != nil {
				t.Error(err)
			}
		})
		testserver.WaitChildren(t, dir, i+2)
	}
	must(t, holder.Unlock())
	for want := range waiters {
		if got := receive(t, "the next waiter", entered); got != want {
			t.Errorf("waiter %d entered, it was the turn of %d", got, want)
		}
	}
	wg.Wait()
	testserver.WaitChildren(t, dir, 0)
}
