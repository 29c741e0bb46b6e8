package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
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
// it would expire. In virtual time, the time that the rival waits is the protocol's alone.
func TestStaleNodeGoesAfterHeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 12 * time.Second
		server := zktest.Start(t)
		open := func(timeout time.Duration) *session.Manager {
			return testserver.Connect(t, "zookeeper", session.WithDialer(server.Dialer()), session.WithTimeout(timeout))
		}
		holder := newMutex(t, open(timeout), "/stale")
		// The rival is cut off too, and its session lives through that.
		rival := newMutex(t, open(3*timeout), "/stale")
		lease, err := holder.Acquire(t.Context())
		must(t, err)
		entered := background(func() error {
			err := rival.Lock(t.Context())
			if lease.Err() == nil {
				err = errors.Join(err, errors.New("the rival got in while the holder still held"))
			}
			return err
		})
		synctest.Wait()
		server.Blackhole(zktest.ToClient)
		<-lease.Done()
		wantErr(t, "lease", lease.Err(), session.ErrLost)
		pending(t, "Lock of the rival, before the server can have expired anything", entered)
		healed := time.Now()
		server.Heal()
		must(t, <-entered)
		// The server last heard of the session when the silent connection was given up,
		// some time after the cut, so it would have kept the node for more than a sixth of a
		// timeout from here.
		waited := time.Since(healed)
		t.Logf("the rival got in %v after the network was back", waited)
		if waited > timeout/6 {
			t.Errorf("the rival got in %v after the network was back", waited)
		}
		must(t, rival.Unlock())
	})
}
