package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/dial"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// closer closes lost sessions on the servers, however long an outage lasts: a new leader counts timeouts anew, so
// their nodes could block all waiters for a timeout more.
//
// A handshake touches the session, so an attempt that breaks could lengthen its life. So closer begins when the loop
// cannot greet the session any more, dials first the server that greeted the next session, and asks for the shortest
// timeout: then the touch shortens the life.
type closer struct {
	m       *Manager
	life    context.Context
	running sync.WaitGroup
	wake    chan struct{}

	mu      sync.Mutex
	left    []*Session
	active  bool
	ending  bool        // the manager has ended
	greeted dial.Target // it greeted a session after the last of left ended
}

func (c *closer) init(m *Manager) {
	life, end := context.WithCancel(context.Background())
	c.m, c.wake, c.life = m, make(chan struct{}, 1), life
	context.AfterFunc(m.open, func() { time.AfterFunc(closeTime, end) })
}

func (c *closer) add(s *Session) {
	if s.isGone() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.greeted = append(c.left, s), dial.Target{}
	if !c.active {
		c.active = true
		c.running.Go(c.run)
	}
}

// beside runs f in a goroutine for which Close waits.
func (c *closer) beside(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ending {
		c.running.Go(f)
	}
}

func (c *closer) hasWork() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.left) > 0
}

func (c *closer) greetedBy(to dial.Target) {
	c.mu.Lock()
	c.greeted = to
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *closer) run() {
	waits := c.m.cfg.waits
	waits.First, waits.Most = min(waits.First, time.Second), min(waits.Most, time.Second)
	for tries := 0; c.life.Err() == nil; {
		c.mu.Lock()
		if c.active = len(c.left) > 0; !c.active {
			c.mu.Unlock()
			return
		}
		s, to := c.left[0], c.greeted
		c.mu.Unlock()
		if to.Addr == "" && c.m.open.Err() == nil { // no server would greet this session either
			select {
			case <-c.wake:
			case <-c.m.open.Done():
			}
			continue
		}
		if tries++; tries%2 == 0 {
			to = dial.Target{} // another server
		}
		gone := s.isGone() || c.m.closeOnServer(c.life, s, to)
		c.mu.Lock()
		c.left = slices.Delete(c.left, 0, 1)
		if !gone {
			c.left = append(c.left, s) // it must not hold others up
		}
		c.mu.Unlock()
		if gone {
			tries = 0
			waits.Reset()
		} else {
			_ = rounds.Until(c.life, nil, waits.Next())
		}
	}
}

func (c *closer) finish() error {
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.running.Wait()
	}()
	select {
	case <-ended:
	case <-c.life.Done():
		_ = rounds.Until(context.Background(), ended, flushTime) // a function of the program may hang
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, s := range c.left {
		errs = append(errs, fmt.Errorf("session: close %s: no server has confirmed it; it ends by expiry", hex(s.ID())))
	}
	return errors.Join(errs...)
}

func (m *Manager) closeOnServer(ctx context.Context, s *Session, first dial.Target) bool {
	s.mu.Lock()
	hello := codec.Hello{TimeoutMillis: 1, Session: s.greeting.Session, Password: s.greeting.Password[:]}
	identify := !s.unidentified && !errors.Is(s.err, zk.ErrAuthFailed)
	s.mu.Unlock()
	out := m.visit(ctx, first, hello, identify)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unidentified, s.gone = s.unidentified || out.Refused, s.gone || out.Gone
	return s.gone
}

func (m *Manager) visit(ctx context.Context, first dial.Target, hello codec.Hello, identify bool) (out wire.Outcome) {
	c, to, err := m.dialer.DialNow(ctx, first)
	if err != nil {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.patience/3)
	defer cancel()
	v := wire.Visit{Hello: hello}
	if identify {
		v.Identities, v.SASL, v.Host, v.Limit = m.cfg.auths, m.cfg.sasl, to.Host, m.cfg.patience/6
	}
	return v.Run(ctx, c)
}
