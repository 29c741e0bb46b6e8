//go:build linux

package clockoverlap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// style is what a holder sends besides its session's heartbeats.
type style string

const (
	quiet  style = "quiet"
	writes style = "one write"
	busy   style = "busy"
)

// kind is a configuration of holders that is reported by itself.
type kind struct {
	timeout time.Duration
	told    bool // the tick
}

func (k kind) String() string {
	if k.told {
		return fmt.Sprintf("%v, tick told", k.timeout)
	}
	return k.timeout.String()
}

// kinds are holders with timeouts of so many seconds, some of which were told the tick. Timeouts are
// multiples of the tick, as rest wants them.
func kinds(seconds ...int) []kind {
	var all []kind
	for _, told := range []bool{false, true} {
		for _, s := range seconds {
			all = append(all, kind{time.Duration(s) * time.Second, told})
		}
	}
	return all
}

// holder holds a lock through the follower, and has a rival.
type holder struct {
	kind
	style   style
	proxy   *zktest.Proxy // nil: connected to the follower directly
	manager *session.Manager
	session *session.Session
	lease   *queue.Lease
	own     string // a node to write

	early   bool      // lost before the cut
	lost    time.Time // when its lease said so by itself
	granted time.Time // when its rival got the lock
	by      time.Duration
	overlap bool
}

// newHolder connects to addr and takes the lock at dir.
func newHolder(ctx context.Context, k kind, s style, addr, dir string, proxied bool) (h *holder, err error) {
	h = &holder{kind: k, style: s, own: dir + "-own"}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if proxied {
		if h.proxy, err = zktest.NewProxy(addr); err != nil {
			return h, err
		}
		addr = h.proxy.Addr()
	}
	opts := []session.Option{session.WithTimeout(k.timeout), silent}
	if k.told {
		opts = append(opts, session.WithTickTime(tick))
	}
	if h.manager, err = session.Connect(ctx, addr, opts...); err != nil {
		return h, err
	}
	if h.session, err = h.manager.Session(ctx); err != nil {
		return h, err
	}
	if granted := h.session.Timeout(); granted != k.timeout {
		return h, fmt.Errorf("granted a timeout of %v instead of %v", granted, k.timeout)
	}
	if _, err = h.session.Create(ctx, h.own, nil, session.Persistent); err != nil {
		return h, err
	}
	lock, err := zklock.New(h.manager, dir)
	if err != nil {
		return h, err
	}
	h.lease, err = lock.Acquire(ctx)
	return h, err
}

func (h *holder) close() {
	if h.manager != nil {
		_ = h.manager.Close() // its servers may have expired the session
	}
	if h.proxy != nil {
		_ = h.proxy.Close()
	}
}

// write sends one write and waits for its answer. A lost answer does not matter here.
func (h *holder) write(ctx context.Context) { _, _ = h.session.Set(ctx, h.own, nil, -1) }

// work reads and writes without pause until ctx ends, so that at any time something was
// answered just before.
func (h *holder) work(ctx context.Context) {
	var requests sync.WaitGroup
	defer requests.Wait()
	for until(ctx, time.Now().Add(50*time.Millisecond)) == nil {
		requests.Go(func() { h.write(ctx) })
		requests.Go(func() { _, _, _ = h.session.Get(ctx, h.own) })
	}
}

// watch notes when the lease is told that it is lost.
func (h *holder) watch() {
	<-h.lease.Done()
	h.lost = time.Now()
}

// yield has the rival take the lock, and checks whether the holder knew of its loss.
func (h *holder) yield(ctx context.Context, rival *zklock.Mutex) error {
	lease, err := rival.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("the rival of %v (%s): %w", h.kind, h.style, err)
	}
	h.granted = time.Now()
	for ; h.believes(); err = until(ctx, time.Now().Add(time.Millisecond)) {
		h.overlap = true
		if err != nil {
			return err
		}
	}
	h.by = time.Since(h.granted)
	return lease.Release(ctx)
}

func (h *holder) believes() bool { return h.lease.Err() == nil || h.session.Remaining() > 0 }

// contest is the holders of a try and their rivals.
type contest struct {
	holders []*holder
	rivals  *session.Manager
	ends    *errgroup.Group // of yield
	watches sync.WaitGroup
}

// newContest has holders of all kinds and styles take locks, and then their rivals wait.
func newContest(ctx context.Context, e *ensemble, s schedule) (*contest, error) {
	c := &contest{ends: new(errgroup.Group)}
	var err error
	if c.rivals, err = session.Connect(ctx, e.Addr(e.leader), session.WithTimeout(30*time.Second), silent); err != nil {
		return c, err
	}
	var mu sync.Mutex
	var starts errgroup.Group
	for _, k := range s.kinds {
		for _, st := range s.styles {
			dir := fmt.Sprintf("/lock%d", serial.Add(1))
			// zk.Conn pings every third of a timeout from when it has connected.
			start := time.Now().Add(rand.N(k.timeout / 3))
			starts.Go(func() error {
				if err := until(ctx, start); err != nil {
					return err
				}
				h, err := newHolder(ctx, k, st, e.Addr(e.follower), dir, s.proxied)
				if err != nil {
					return fmt.Errorf("a holder of %v (%s): %w", k, st, err)
				}
				mu.Lock()
				c.holders = append(c.holders, h)
				mu.Unlock()
				c.watches.Go(h.watch)
				rival, err := zklock.New(c.rivals, dir)
				if err != nil {
					return err
				}
				c.ends.Go(func() error { return h.yield(ctx, rival) })
				return waitQueued(ctx, rival)
			})
		}
	}
	return c, starts.Wait()
}

// waitQueued waits until a rival is in the queue behind a holder.
func waitQueued(ctx context.Context, rival *zklock.Mutex) error {
	for {
		queued, err := rival.Contenders(ctx)
		if err != nil || len(queued) > 1 {
			return err
		}
		if err := until(ctx, time.Now().Add(5*time.Millisecond)); err != nil {
			return err
		}
	}
}

// of returns the holders of one style.
func (c *contest) of(st style) []*holder {
	var some []*holder
	for _, h := range c.holders {
		if h.style == st {
			some = append(some, h)
		}
	}
	return some
}

// close ends all sessions. The rivals must have got their locks, or ctx have ended.
func (c *contest) close() {
	var all sync.WaitGroup
	for _, h := range c.holders {
		all.Go(h.close)
	}
	if c.rivals != nil {
		all.Go(func() { _ = c.rivals.Close() })
	}
	all.Wait()
	c.watches.Wait()
}
