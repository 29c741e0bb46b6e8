package dial

import (
	"cmp"
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

// Server is a server as the user named it.
type Server struct{ Host, Port string }

func (s Server) String() string { return net.JoinHostPort(s.Host, s.Port) }

type Target struct {
	Server
	Addr string // ip:port, or a name for the user's dialer
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
	// lookupDelay is how long a round waits for lookups, if other addresses are known.
	lookupDelay = 500 * time.Millisecond
	// lookupLimit leaves the resolver of package net time to ask again, after 5 s.
	lookupLimit = 10 * time.Second
	roundLasts  = 10 * time.Second
)

// hosts knows the servers and their addresses. It resolves names for each round, because the addresses of servers in
// containers change. If the resolver fails, as it often does in an outage, the last addresses are dialled. net.Dialer
// does not do: it stays with the first address that accepts connections, even if the server there serves nobody.
type hosts struct {
	lookup  func(ctx context.Context, host string) ([]string, error) // nil: names are addresses
	resolve func(ctx context.Context) ([]string, error)              // of the user, or nil
	run     func(func()) bool                                        // false if the dialer is closed
	life    context.Context

	mu      sync.Mutex
	servers []Server
	names   map[string]*lookup // by host; "" is the user's resolver
	news    chan struct{}      // closed and replaced when a lookup has ended
}

type lookup struct {
	found  []string
	err    error
	asking bool
	began  time.Time
}

// rotation goes through the addresses in rounds, each in random order, so that clients spread over the servers. The
// lock of hosts guards it.
type rotation struct {
	left  []Target
	round int // since renew
	began time.Time
	last  Target // begins no round, if there is another
}

// next returns the next address, and its round, counted from 0. It fails if ctx ends, or if no address is known.
func (h *hosts) next(ctx context.Context, r *rotation) (Target, int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(r.left) == 0 || time.Since(r.began) >= roundLasts {
		if h.resolve != nil {
			h.askLocked("", h.resolve)
			h.awaitLocked(ctx)
		}
		for _, s := range h.servers {
			if !h.isAddress(s.Host) {
				h.askLocked(s.Host, func(ctx context.Context) ([]string, error) { return h.lookup(ctx, s.Host) })
			}
		}
		h.awaitLocked(ctx)
		if err := ctx.Err(); err != nil {
			return Target{}, 0, err
		}
		r.left, r.began = h.knownLocked(), time.Now()
		rand.Shuffle(len(r.left), func(i, j int) { r.left[i], r.left[j] = r.left[j], r.left[i] })
		if i := slices.Index(r.left, r.last); i >= 0 {
			r.left = append(slices.Delete(r.left, i, i+1), r.last)
		}
		r.round++
	}
	if len(r.left) == 0 {
		return Target{}, r.round, cmp.Or(h.failureLocked(), errNoAddress)
	}
	r.last, r.left = r.left[0], r.left[1:]
	return r.last, r.round - 1, nil
}

var errNoAddress = errors.New("no address of a server is known")

// renew ends the round, because its addresses may be old.
func (h *hosts) renew(r *rotation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.left, r.round = nil, 0
}

func (h *hosts) knownLocked() (all []Target) {
	for _, s := range h.servers {
		if h.isAddress(s.Host) {
			all = append(all, Target{s, s.String()})
		} else if n := h.names[s.Host]; n != nil {
			for _, ip := range n.found {
				all = append(all, Target{s, net.JoinHostPort(ip, s.Port)})
			}
		}
	}
	return all
}

func (h *hosts) isAddress(host string) bool {
	if h.lookup == nil {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// awaitLocked waits for lookups, not long if an address is known, and no longer than lookupLimit, since a resolver
// may hang. It releases the lock meanwhile.
func (h *hosts) awaitLocked(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	for {
		var pending bool
		var patience time.Duration
		for _, n := range h.names {
			if n.asking {
				pending, patience = true, max(patience, lookupDelay-time.Since(n.began))
			}
		}
		if len(h.knownLocked()) == 0 {
			patience = lookupLimit
		}
		if !pending || patience <= 0 || ctx.Err() != nil {
			return
		}
		late := time.NewTimer(patience)
		news := h.news
		h.mu.Unlock()
		select {
		case <-news:
		case <-late.C:
		case <-ctx.Done():
		}
		late.Stop()
		h.mu.Lock()
	}
}

func (h *hosts) askLocked(name string, ask func(context.Context) ([]string, error)) {
	n := h.names[name]
	if n == nil {
		n = new(lookup)
		h.names[name] = n
	}
	if n.asking {
		return
	}
	n.began = time.Now()
	n.asking = h.run(func() {
		var found []string
		err := errors.New("it has not returned") // stays if ask calls runtime.Goexit
		defer func() { h.answer(name, n, found, err) }()
		ctx, cancel := context.WithTimeout(h.life, lookupLimit)
		defer cancel()
		found, err = ask(ctx)
	})
}

func (h *hosts) answer(name string, n *lookup, found []string, err error) {
	var servers []Server
	if err == nil && name == "" {
		servers, err = parseList(found)
	} else if err == nil && len(found) == 0 {
		err = errors.New("the name has no address")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n.asking, n.err = false, err
	var dns *net.DNSError
	switch {
	case len(servers) > 0:
		h.servers = servers
		for name := range h.names {
			if name != "" && !slices.ContainsFunc(servers, func(s Server) bool { return s.Host == name }) {
				delete(h.names, name)
			}
		}
	case err == nil:
		n.found = found
	case errors.As(err, &dns) && dns.IsNotFound: // another service may have the addresses by now
		n.found = nil
	}
	close(h.news)
	h.news = make(chan struct{})
}

func (h *hosts) failureLocked() error {
	var errs []error
	for name, n := range h.names {
		err := n.err
		if n.asking && time.Since(n.began) >= lookupDelay {
			err = errNoAnswer
		}
		switch {
		case err == nil:
		case name == "":
			errs = append(errs, fmt.Errorf("ask the resolver: %w", err))
		default:
			errs = append(errs, fmt.Errorf("resolve %s: %w", name, err))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// parseList returns the servers of a resolver's answer, each once, and what is wrong with the others.
func parseList(answer []string) (servers []Server, err error) {
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
