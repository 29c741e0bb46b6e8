package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// target is one address to dial, and the host it stands for.
type target struct {
	addr string
	host string // as in the connect string; TLS verifies it
}

// name returns host and port as in the connect string.
func (t target) name() string {
	_, port, err := net.SplitHostPort(t.addr)
	if err != nil {
		return t.addr
	}
	return net.JoinHostPort(t.host, port)
}

// hosts hands out the addresses of the servers, one after another, in rounds. Each
// round resolves the names anew, in a new order: addresses of servers in containers
// change while names stay. zk.Conn's own provider resolves once.
type hosts struct {
	servers []hostPort
	lookup  func(ctx context.Context, host string) ([]string, error) // nil: names are dialled as they are

	mu    sync.Mutex
	round []target
	last  target
}

// next returns the next address to dial. It fails when no name of a whole round
// could be resolved; the next call begins another round.
func (h *hosts) next(ctx context.Context) (target, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.round) == 0 {
		round, err := h.resolve(ctx)
		if err != nil {
			return target{}, err
		}
		h.round = arrange(round, h.last)
	}
	h.last, h.round = h.round[0], h.round[1:]
	return h.last, nil
}

// arrange shuffles a round, so that clients spread over the servers, but does not
// begin with the server tried last if there is another.
func arrange(round []target, last target) []target {
	rand.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
	if len(round) > 1 && round[0] == last {
		round[0], round[len(round)-1] = round[len(round)-1], round[0]
	}
	return round
}

// resolve returns the addresses of all servers. A name that cannot be resolved is
// left out as long as another can.
func (h *hosts) resolve(ctx context.Context) ([]target, error) {
	found := make([][]target, len(h.servers))
	errs := make([]error, len(h.servers))
	var wg sync.WaitGroup
	for i, s := range h.servers {
		wg.Go(func() { found[i], errs[i] = h.resolveOne(ctx, s) })
	}
	wg.Wait()
	var all []target
	for _, f := range found {
		all = append(all, f...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no server could be resolved: %w", errors.Join(errs...))
	}
	return all, nil
}

func (h *hosts) resolveOne(ctx context.Context, s hostPort) ([]target, error) {
	if h.lookup == nil || net.ParseIP(s.host) != nil {
		return []target{{s.String(), s.host}}, nil
	}
	ips, err := h.lookup(ctx, s.host)
	if err != nil {
		return nil, err
	}
	out := make([]target, len(ips))
	for i, ip := range ips {
		out[i] = target{net.JoinHostPort(ip, s.port), s.host}
	}
	return out, nil
}
