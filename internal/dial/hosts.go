package dial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/logbook"
)

const (
	// resolutionDelay is how long the first dial of a round waits for names that are still being
	// resolved. Otherwise servers whose names resolve fast would get all clients. The value is
	// that of RFC 8305, section 3.
	resolutionDelay = 50 * time.Millisecond
	// staleDelay is how long a name may take to resolve before its old addresses are dialled.
	staleDelay = 500 * time.Millisecond
	// lookupTimeout bounds one lookup. The resolver of package net asks again after 5 s.
	lookupTimeout = 10 * time.Second
	// roundTimeout is the age at which the addresses of a round are resolved again.
	roundTimeout = 10 * time.Second
)

// hosts hands out the addresses of the servers, one after another, in rounds. Each round resolves
// the names again, because the addresses of servers in containers change while their names stay.
// It goes through the addresses in random order, so that clients spread over the servers.
//
// net.Dialer does not resolve the names, because one name may stand for several servers. A
// net.Dialer tries the addresses of a name in the order of the resolver, and stays with the first
// that accepts a connection, even if the server there serves nobody. The next dial would end
// there again and never reach the others.
//
// A name that is slow to resolve delays no other server. Servers with known addresses are dialled
// in the meantime, and new addresses join the round when they come. If the resolver does not
// answer, addresses from earlier rounds are dialled. A network outage often affects the resolver
// too, and those addresses are most likely still right when it ends.
//
// With a resolver of the user (list.go), each round also asks which servers there are.
type hosts struct {
	lookup func(ctx context.Context, host string) ([]string, error)

	life    context.Context // of lookups
	end     context.CancelFunc
	lookups sync.WaitGroup

	mu    sync.Mutex
	list  *list // nil: the names stay
	names []*name
	round time.Time               // when the present round began; zero: the next dial begins a round
	tried map[logbook.Target]bool // in this round
	last  logbook.Target          // the address handed out last, or connected to since
	news  chan struct{}           // closed and replaced when a lookup has ended, or the resolver has answered
}

// name is one server of the connect string.
type name struct {
	Server
	fixed  bool // host is an address
	found  []logbook.Target
	fresh  bool      // found was resolved in this round
	asking bool      // a lookup is running
	asked  time.Time // when the first lookup since the last success began
	err    error     // of the last lookup
}

// newHosts treats names as addresses if lookup is nil.
func newHosts(servers []Server, lookup func(ctx context.Context, host string) ([]string, error)) *hosts {
	h := &hosts{lookup: lookup, news: make(chan struct{})}
	h.life, h.end = context.WithCancel(context.Background())
	for _, s := range servers {
		h.names = append(h.names, h.newName(s))
	}
	return h
}

func (h *hosts) newName(s Server) *name {
	n := &name{Server: s}
	if _, err := netip.ParseAddr(s.Host); err == nil || h.lookup == nil {
		n.fixed, n.fresh, n.found = true, true, []logbook.Target{{Addr: s.String(), Host: s.Host}}
	}
	return n
}

// next returns the next address to dial. If none is known, it waits. It fails when ctx ends, or
// when no name of a whole round can be resolved. The next call then begins another round.
func (h *hosts) next(ctx context.Context) (logbook.Target, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil { // checked with the lock held: see won
			return logbook.Target{}, err
		}
		left, wait := h.leftLocked(time.Now())
		switch {
		case wait > 0 && (len(left) == 0 || len(h.tried) == 0):
		case len(left) > 0:
			return h.pickLocked(left), nil
		case !h.askingLocked():
			return logbook.Target{}, h.failLocked()
		}
		if err := h.awaitLocked(ctx, wait); err != nil {
			return logbook.Target{}, fmt.Errorf("resolve the servers' names: %w", err)
		}
	}
}

// awaitLocked waits until a lookup has ended, for at most wait unless wait is 0. It releases the
// lock while it waits.
func (h *hosts) awaitLocked(ctx context.Context, wait time.Duration) error {
	news := h.news
	h.mu.Unlock()
	defer h.mu.Lock()
	var late <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-news:
	case <-late:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// failLocked ends a round in which no name could be resolved.
func (h *hosts) failLocked() error {
	h.round = time.Time{}
	return logbook.Failures(h.failedNamesLocked(time.Now()))
}

// failedNames returns why names could not be resolved, and which of them are slow.
func (h *hosts) failedNames() []*logbook.Failure {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failedNamesLocked(time.Now())
}

func (h *hosts) failedNamesLocked(now time.Time) (out []*logbook.Failure) {
	if f := h.list.failure(now); f != nil {
		out = append(out, f)
	}
	for _, n := range h.names {
		switch {
		case n.err != nil:
			out = append(out, unresolved(n.Host, n.err))
		case n.asking && now.Sub(n.asked) > staleDelay:
			out = append(out, unresolved(n.Host, logbook.ErrNoAnswer))
		}
	}
	return out
}

func unresolved(host string, why error) *logbook.Failure {
	return &logbook.Failure{Step: logbook.StepLookup, To: logbook.Target{Host: host}, Err: why}
}

// leftLocked returns the addresses that the round has left. If there are none, or they are old,
// it begins another round. It also returns how long to wait for more addresses. If there are some
// already, only the first dial of a round waits.
func (h *hosts) leftLocked(now time.Time) ([]logbook.Target, time.Duration) {
	if h.round.IsZero() || now.Sub(h.round) > roundTimeout {
		h.beginLocked(now)
	}
	left, wait := h.untriedLocked(now)
	if len(left) == 0 && len(h.tried) > 0 {
		h.beginLocked(now)
		left, wait = h.untriedLocked(now)
	}
	return left, wait
}

// beginLocked begins a round, with lookups of all names.
func (h *hosts) beginLocked(now time.Time) {
	h.round, h.tried = now, make(map[logbook.Target]bool)
	h.askLocked(now)
	for _, n := range h.names {
		h.lookUpLocked(n, now)
	}
}

// lookUpLocked begins a lookup of a name, if it is one and none is running.
func (h *hosts) lookUpLocked(n *name, now time.Time) {
	if n.fixed {
		return
	}
	n.fresh = false
	if n.asking {
		return
	}
	n.asking = true
	if n.asked.IsZero() {
		n.asked = now
	}
	h.lookups.Go(func() {
		ctx, cancel := context.WithTimeout(h.life, lookupTimeout)
		defer cancel()
		ips, err := h.lookup(ctx, n.Host)
		h.answer(n, ips, err)
	})
}

// answer takes the end of a lookup.
func (h *hosts) answer(n *name, ips []string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil && len(ips) == 0 {
		err = errors.New("the name has no address")
	}
	n.asking, n.err = false, err
	var dns *net.DNSError
	switch {
	case err == nil:
		n.fresh, n.asked, n.found = true, time.Time{}, nil
		for _, ip := range ips {
			n.found = append(n.found, logbook.Target{Addr: net.JoinHostPort(ip, n.Port), Host: n.Host})
		}
	case errors.As(err, &dns) && dns.IsNotFound:
		n.found = nil // another service may have the old addresses by now
	}
	h.tellLocked()
}

// tellLocked wakes the dials that wait for an address.
func (h *hosts) tellLocked() {
	close(h.news)
	h.news = make(chan struct{})
}

// untriedLocked returns the addresses that this round has resolved and not tried. If there are
// none, it returns old addresses of names that are slow, or have failed, to resolve. It also returns how long to
// wait for more.
func (h *hosts) untriedLocked(now time.Time) (left []logbook.Target, wait time.Duration) {
	if patience := h.list.patience(now); patience > 0 {
		return nil, patience
	}
	var stale []logbook.Target
	var early time.Duration // until old addresses may be used
	for _, n := range h.names {
		var untried []logbook.Target
		for _, t := range n.found {
			if !h.tried[t] {
				untried = append(untried, t)
			}
		}
		waited := now.Sub(n.asked)
		if n.asking && waited < resolutionDelay {
			wait = resolutionDelay - waited
		}
		switch {
		case n.fresh:
			left = append(left, untried...)
		case !n.asking || waited >= staleDelay:
			stale = append(stale, untried...)
		case len(untried) > 0:
			early = staleDelay - waited
		}
	}
	switch {
	case len(left) > 0:
		return left, wait
	case len(stale) > 0:
		return stale, wait
	}
	return nil, max(wait, early)
}

func (h *hosts) askingLocked() bool {
	if h.list != nil && h.list.asking {
		return true
	}
	for _, n := range h.names {
		if n.asking {
			return true
		}
	}
	return false
}

// pickLocked chooses at random, but not the address that was tried last if there is another.
func (h *hosts) pickLocked(left []logbook.Target) logbook.Target {
	i := rand.IntN(len(left))
	if left[i] == h.last && len(left) > 1 {
		i = (i + 1 + rand.IntN(len(left)-1)) % len(left)
	}
	h.last = left[i]
	h.tried[h.last] = true
	return h.last
}

// won takes the address that won a race. It is called once the context of the other dials has
// ended.
func (h *hosts) won(t logbook.Target) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = t
}

// renew ends the round, because its addresses may be old.
func (h *hosts) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.round = time.Time{}
}
