package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// partitionTimeout is the session timeout of the holders that are cut off.
const partitionTimeout = time.Second

// A holder that is cut off knows of its loss before a rival gets the lock. The test cuts fifty holders off, at
// random moments between two heartbeats, ten at a time.
func TestPartitionedHolderKnowsFirst(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	const runs, atOnce = 50, 10
	rivals := connect(t)
	cuts := []zktest.Direction{zktest.Both, zktest.ToServer, zktest.ToClient}
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range runs {
		cut := cuts[i%len(cuts)]
		slots <- struct{}{}
		p := newPartition(t, rivals)
		wg.Go(func() {
			defer func() { <-slots }()
			if err := p.run(cut); err != nil {
				t.Errorf("run %d, cut off %v: %v", i, cut, err)
			}
		})
	}
	wg.Wait()
}

// partition is a holder behind a proxy and a rival that is not.
type partition struct {
	ctx     context.Context
	proxy   *zktest.Proxy
	manager *session.Manager
	holder  *zklock.Mutex
	rival   *zklock.Mutex
}

func newPartition(t *testing.T, rivals *session.Manager) *partition {
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(partitionTimeout))
	dir := testserver.Path(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*testserver.Patience)
	t.Cleanup(cancel)
	return &partition{ctx, proxy, m, newMutex(t, m, dir), newMutex(t, rivals, dir)}
}

// run cuts the holder off, and returns an error if the rival gets the lock while the holder still reports held.
func (p *partition) run(cut zktest.Direction) error {
	defer p.manager.Close() // so that there are no more than atOnce of them
	defer p.proxy.Heal()
	for { // on a busy machine a session of a second can be lost before it is cut off
		var verdict error
		err := p.holder.Do(p.ctx, func(work context.Context) error {
			verdict = p.inside(work, cut)
			return nil
		})
		switch {
		case errors.Is(verdict, errTooEarly):
		case verdict != nil:
			return verdict
		case !errors.Is(err, session.ErrLost):
			return fmt.Errorf("Do returned %w, want a loss", err)
		default:
			return nil
		}
	}
}

var errTooEarly = errors.New("lost before it was cut off")

func (p *partition) inside(work context.Context, cut zktest.Direction) error {
	// This waits for nothing. It picks a moment between two heartbeats.
	select {
	case <-time.After(rand.N(partitionTimeout / 4)):
	case <-work.Done():
		return errTooEarly
	}
	entered := make(chan error, 1)
	go func() {
		if err := p.rival.Lock(p.ctx); err != nil {
			entered <- err
			return
		}
		// Ask the former holder before anything else is done with the lock.
		if p.holder.Held() {
			entered <- errors.New("the rival got in while the holder still held")
			return
		}
		entered <- p.rival.Unlock()
	}()
	p.proxy.Blackhole(cut)
	// The context ends too, before the connection is healed.
	select {
	case <-work.Done():
	case <-time.After(testserver.Patience):
		return errors.New("the holder's context never ended")
	}
	if cause := context.Cause(work); !errors.Is(cause, session.ErrLost) {
		return fmt.Errorf("the holder's context ended by %v", cause)
	}
	if p.holder.Held() {
		return errors.New("held after its context had ended")
	}
	return <-entered
}

// If only the way back is cut, the requests of the holder keep its session alive on the server. Its stale node
// must not keep other contenders waiting: the lost session is closed once the server can be reached, long before
// it would expire.
func TestStaleNodeGoesAfterHeal(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	const timeout = 12 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	proxy := testserver.Proxy(t)
	dir := testserver.Path(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(timeout))
	holder, rival := newMutex(t, m, dir), newMutex(t, connect(t), dir)
	lease, err := holder.Acquire(ctx)
	must(t, err)
	type entry struct {
		at         time.Time
		err, first error // first: what the holder's lease says at that moment
	}
	entered := make(chan entry, 1)
	go func() {
		err := rival.Lock(ctx)
		entered <- entry{time.Now(), err, lease.Err()}
	}()
	testserver.WaitChildren(t, dir, 2)
	proxy.Blackhole(zktest.ToClient)
	<-lease.Done()
	wantErr(t, "lease", lease.Err(), session.ErrLost)
	select {
	case e := <-entered:
		t.Fatalf("the rival is in (%v) before the server can have expired anything", e.err)
	default:
	}
	healed := time.Now()
	proxy.Heal()
	e := receive(t, "the rival", entered)
	must(t, e.err)
	wantErr(t, "the holder's lease when the rival was in", e.first, session.ErrLost)
	// The server last heard of the session when the silent connection was given up,
	// some time after the cut, so it would have kept the node for more than a sixth of a
	// timeout from here.
	waited := e.at.Sub(healed)
	t.Logf("the rival got in %v after the network was back", waited)
	if waited > timeout/6 {
		t.Errorf("the rival got in %v after the network was back", waited)
	}
	must(t, rival.Unlock())
}
