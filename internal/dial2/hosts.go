package dial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is one server of a connect string, as the user named it.
type Server struct{ Host, Port string }

func (s Server) String() string { return net.JoinHostPort(s.Host, s.Port) }

// Target is an address of a server.
type Target struct {
	Server
	Addr string // ip:port, or the server itself for a dialer of the user
}

// Name returns the host and port as the user named them, or "".
func (t Target) Name() string {
	if t.Host == "" {
		return ""
	}
	return t.Server.String()
}

func (t Target) String() string {
	if t.Addr == t.Name() {
		return t.Addr
	}
	return fmt.Sprintf("%s (%s)", t.Name(), t.Addr)
}

const (
	// lookupDelay is how long a round waits for names, and for the resolver of the user, if there are addresses already.
	lookupDelay = 500 * time.Millisecond
	// lookupLimit bounds a lookup. The resolver of package net asks again after 5 s.
	lookupLimit = 10 * time.Second
	// roundLasts is the age at which the addresses of a round are resolved again.
	roundLasts = 10 * time.Second
)

// hosts hands out the addresses of the servers, one after another, in rounds. Each round resolves the names again, because
// the addresses of servers in containers change, and goes through the addresses in random order.
//
// net.Dialer does not resolve the names: one name may stand for several servers, and a net.Dialer stays with the first
// address that accepts a connection, even if the server there serves nobody.
type hosts struct {
	lookup  func(ctx context.Context, host string) ([]string, error) // nil: names are addresses
	resolve func(ctx context.Context) (servers []Server, err error)  // of the user; nil: none
	life    context.Context                                          // of lookups
	running *sync.WaitGroup

	mu      sync.Mutex
	servers []Server
	found   map[string][]string // the addresses of names, as last resolved
	errs    map[string]error    // of the last lookups; "" is the resolver
	asking  map[string]chan struct{}
	round   []Target // what is left
	rounds  int      // how many have begun since renew
	began   time.Time
	last    Target
}

// next returns the next address, and how many rounds went before since renew. It fails if ctx ends, or if there is no
// address.
func (h *hosts) next(ctx context.Context) (Target, int, error) {
	h.mu.Lock()
	fresh := len(h.round) > 0 && time.Since(h.began) < roundLasts
	h.mu.Unlock()
	if !fresh {
		h.refresh(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return Target{}, 0, err
	}
	if !fresh {
		h.beginLocked()
	}
	if len(h.round) == 0 {
		return Target{}, h.rounds, h.failureLocked()
	}
	h.last, h.round = h.round[0], h.round[1:]
	return h.last, h.rounds - 1, nil
}

// refresh asks for the servers and then for their addresses. It waits as long as that takes if nothing is known.
func (h *hosts) refresh(ctx context.Context) {
	if h.resolve != nil {
		h.mu.Lock()
		known := len(h.servers) > 0
		h.mu.Unlock()
		await(ctx, known, h.ask("", func(ctx context.Context) error {
			servers, err := h.resolve(ctx)
			if len(servers) > 0 {
				h.mu.Lock()
				h.servers = servers
				h.mu.Unlock()
			}
			return err
		}))
	}
	h.mu.Lock()
	servers, known := h.servers, false
	for _, s := range servers {
		known = known || h.isAddress(s.Host) || len(h.found[s.Host]) > 0
	}
	h.mu.Unlock()
	var all []<-chan struct{}
	for _, s := range servers {
		if h.isAddress(s.Host) {
			continue
		}
		all = append(all, h.ask(s.Host, func(ctx context.Context) error { return h.lookUp(ctx, s.Host) }))
	}
	await(ctx, known, all...)
}

// await waits until all channels are closed, and if something is known already then not for long.
func await(ctx context.Context, known bool, all ...<-chan struct{}) {
	limit := lookupLimit
	if known {
		limit = lookupDelay
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, c := range all {
		select {
		case <-c:
		case <-ctx.Done():
			return
		}
	}
}

// ask begins to ask for something, unless that is being asked for. The channel is closed when there is an answer.
func (h *hosts) ask(what string, f func(context.Context) error) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.asking[what]; c != nil {
		return c
	}
	c := make(chan struct{})
	h.asking[what] = c
	h.running.Go(func() {
		defer close(c)
		ctx, cancel := context.WithTimeout(h.life, lookupLimit)
		defer cancel()
		err := f(ctx)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.errs[what] = err
		delete(h.asking, what)
	})
	return c
}

func (h *hosts) lookUp(ctx context.Context, host string) error {
	ips, err := h.lookup(ctx, host)
	if err == nil && len(ips) == 0 {
		err = errors.New("the name has no address")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var dns *net.DNSError
	if err == nil || errors.As(err, &dns) && dns.IsNotFound { // then another service may have the old addresses by now
		h.found[host] = ips
	}
	return err
}

func (h *hosts) isAddress(host string) bool {
	if h.lookup == nil {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// beginLocked begins a round. The address that was tried last comes last.
func (h *hosts) beginLocked() {
	h.began, h.round = time.Now(), nil
	h.rounds++
	for _, s := range h.servers {
		if h.isAddress(s.Host) {
			h.round = append(h.round, Target{s, s.String()})
		}
		for _, ip := range h.found[s.Host] {
			h.round = append(h.round, Target{s, net.JoinHostPort(ip, s.Port)})
		}
	}
	rand.Shuffle(len(h.round), func(i, j int) { h.round[i], h.round[j] = h.round[j], h.round[i] })
	if i := slices.Index(h.round, h.last); i >= 0 {
		h.round = append(slices.Delete(h.round, i, i+1), h.last)
	}
}

func (h *hosts) failureLocked() error {
	var errs []error
	for what, err := range h.errs {
		switch {
		case err == nil:
		case what == "":
			errs = append(errs, fmt.Errorf("ask the resolver: %w", err))
		default:
			errs = append(errs, fmt.Errorf("resolve %s: %w", what, err))
		}
	}
	for what := range h.asking {
		errs = append(errs, fmt.Errorf("resolve %s: no answer", what))
	}
	return errors.Join(errs...)
}

// renew ends the round, because its addresses may be old.
func (h *hosts) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.round, h.rounds = nil, 0
}

func (h *hosts) firstRound() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rounds <= 1
}

// ParseList returns the servers of a resolver's answer, each once. It fails if one cannot be a server.
func ParseList(answer []string) (servers []Server, err error) {
	for _, item := range answer {
		item = strings.TrimSpace(item)
		s, wrong := parseHostPort(item)
		switch {
		case strings.ContainsAny(item, ",/"):
			err = errors.Join(err, fmt.Errorf("server %q: want one host, with or without a port, and no path", item))
		case wrong != nil:
			err = errors.Join(err, wrong)
		case !slices.Contains(servers, s):
			servers = append(servers, s)
		}
	}
	if len(servers) == 0 && err == nil {
		err = errors.New("it names no server")
	}
	return servers, err
}
