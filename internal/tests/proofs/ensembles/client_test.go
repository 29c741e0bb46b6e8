package ensembles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/referee"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

const (
	workers   = 8
	workFor   = 10 * time.Millisecond
	held      = 3 // locks that are held for seconds
	holders   = 2 // of each of these
	leastHold = 1 * time.Second
	mostHold  = 3 * time.Second
)

// client is a session that takes one lock again and again.
type client struct {
	name    string
	servers []int // to which it may connect
	manager *session.Manager
	lock    *zklock.Mutex
	hold    func() time.Duration
	served  atomic.Int64 // when it got its lock last
	clings  atomic.Bool  // it holds until it loses its lock

	mu      sync.Mutex
	changes []session.Change
}

// connect opens the client's session.
func (c *client) connect(ctx context.Context, s *site, path string) (err error) {
	addrs := make([]string, len(c.servers))
	for i, server := range c.servers {
		addrs[i] = s.Addr(server)
	}
	c.manager, err = session.Connect(ctx, strings.Join(addrs, ","), session.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	c.manager.Subscribe(func(ch session.Change) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changes = append(c.changes, ch)
	})
	c.lock, err = zklock.New(c.manager, path)
	return err
}

// work takes the lock, holds it and gives it back, again and again until ctx ends.
func (c *client) work(ctx context.Context, s *site) error {
	for {
		lease, err := c.lock.Acquire(ctx)
		if ctx.Err() != nil {
			if err == nil {
				err = lease.Release(context.WithoutCancel(ctx))
			}
			return c.unlessGone(err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		c.served.Store(time.Now().UnixNano())
		s.attend(ctx, c, lease)
		if err := c.unlessGone(lease.Release(ctx)); err != nil {
			return err
		}
	}
}

// unlessGone returns nil for what may come of an Acquire or a Release here: ctx has ended, or the hold was lost.
func (c *client) unlessGone(err error) error {
	for _, fine := range []error{context.Canceled, session.ErrLost, queue.ErrReleasePending} {
		if errors.Is(err, fine) {
			return nil
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", c.name, err)
	}
	return err
}

// attend tells the referee of a hold for as long as it lasts.
func (s *site) attend(ctx context.Context, c *client, lease *queue.Lease) {
	h := &referee.Hold{
		Place: referee.Place{Path: c.lock.Path(), Capacity: 1}, Who: c.name, What: "a hold", Weight: 1,
		Held: func() bool { return lease.Err() == nil },
	}
	s.referee.Enter(h)
	defer s.referee.Leave(h)
	if c.isWorker() {
		s.granted()
	}
	s.leases.Store(c, lease)
	defer s.leases.Delete(c)
	ctx, cancel := lease.Context(ctx)
	defer cancel()
	for pause(ctx, c.hold()) && c.clings.Load() {
	}
}

func (c *client) isWorker() bool { return c.lock.Path() == pathOf(0) }

// losses returns the times at which sessions of the client were lost.
func (c *client) losses() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []time.Time
	for _, ch := range c.changes {
		if ch.To == session.Lost && ch.From != session.Lost {
			all = append(all, ch.At)
		}
	}
	return all
}

// story returns all that has happened to the client's sessions.
func (c *client) story() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, ch := range c.changes {
		fmt.Fprintf(&b, "\n\t%s %v to %v, session %#x: %v", ch.At.Format("15:04:05.000"), ch.From, ch.To, ch.Session, ch.Err)
	}
	return b.String()
}

// newClients returns the clients of a site, before they connect.
func newClients(servers func(i int) []int) []*client {
	var all []*client
	add := func(name string, hold func() time.Duration) {
		all = append(all, &client{name: name, servers: servers(len(all)), hold: hold})
	}
	for i := range workers {
		add(fmt.Sprintf("worker %d", i), func() time.Duration { return workFor })
	}
	for i := range held * holders {
		add(fmt.Sprintf("holder %d", i), func() time.Duration { return leastHold + rand.N(mostHold-leastHold) })
	}
	return all
}

// pathOf returns the path of the lock that a client takes.
func pathOf(i int) string {
	if i < workers {
		return "/ensembles/work"
	}
	return fmt.Sprintf("/ensembles/hold-%d", i%held)
}
