package ensemble

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// member is a server in the ensemble's own configuration.
type member struct {
	id       string // server.1
	observer bool
	client   string // host:port for clients; "": not known
}

// parseConfig reads the data of /zookeeper/config. A line of it, of which the part for clients can be missing:
//
//	server.1=zk1:2888:3888:participant;0.0.0.0:2181
func parseConfig(data string) (members []member) {
	for line := range strings.Lines(data) {
		id, text, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || !strings.HasPrefix(id, "server.") {
			continue
		}
		servers, clients, _ := strings.Cut(text, ";")
		members = append(members, member{id, strings.Contains(servers, ":observer"), clientAddress(servers, clients)})
	}
	return members
}

// clientAddress returns host:port for clients. servers begins with the host for other servers. clients is an address or a
// port. Its host can be the word for all addresses of a machine.
func clientAddress(servers, clients string) string {
	if clients == "" {
		return ""
	}
	host, port, err := net.SplitHostPort(clients)
	if err != nil {
		host, port = "", clients
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host, _, _ = strings.Cut(servers, ":"); strings.HasPrefix(servers, "[") {
			host, _, _ = strings.Cut(servers[1:], "]")
		}
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || host == "" {
		return ""
	}
	return net.JoinHostPort(host, port)
}

// configuration reads the ensemble's own configuration. A standalone server has none. Servers whose configuration file
// names the port for clients elsewhere know only their own, so all of them are asked.
func (e *examination) configuration(ctx context.Context) {
	var mu sync.Mutex
	known := map[string]member{}
	e.each(func(p *probe) {
		data, _, err := p.s.Get(ctx, "/zookeeper/config")
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, m := range parseConfig(string(data)) {
			m.client = cmp.Or(m.client, known[m.id].client)
			known[m.id] = m
		}
	})
	var addresses []string
	for _, m := range known {
		if m.observer {
			e.report.Observers++
		} else {
			e.report.Voters++
		}
		if m.client != "" {
			addresses = append(addresses, m.client)
		}
	}
	// If --zk has as many servers, the configuration may only call them otherwise. With TLS they have another port.
	if len(e.probes) < len(known) && e.plan.TLS == nil {
		slices.Sort(addresses)
		e.unlisted(ctx, addresses)
	}
}

// unlisted asks servers of the configuration that --zk does not name whether they serve clients.
func (e *examination) unlisted(ctx context.Context, addresses []string) {
	ctx, cancel := context.WithTimeout(ctx, e.plan.Connect)
	defer cancel()
	found := make([]*Unlisted, len(addresses))
	var g errgroup.Group
	for i, name := range addresses {
		g.Go(func() error {
			targets := Resolve(ctx, []string{name})
			if !slices.ContainsFunc(targets, e.lists) {
				found[i] = &Unlisted{Name: name, Error: e.plan.visit(ctx, targets[0])}
			}
			return nil
		})
	}
	_ = g.Wait()
	for _, u := range found {
		if u != nil {
			e.report.Unlisted = append(e.report.Unlisted, *u)
		}
	}
}

// lists reports whether --zk has a server.
func (e *examination) lists(t Target) bool {
	return slices.ContainsFunc(e.probes, func(p *probe) bool {
		return p.target.Name == t.Name || t.Address != "" && p.target.Address == t.Address
	})
}

// visit asks a server whether it serves clients, and returns why not, or "".
func (p *Plan) visit(ctx context.Context, t Target) string {
	if t.Err != nil {
		return p.plain(t.Err)
	}
	text, err := word(ctx, t.dial(nil), "srvr")
	if err != nil {
		return p.plain(err)
	}
	if _, _, serving := parseServing(text); !serving {
		return notServing
	}
	return ""
}

// following asks the leader how many voters follow it, if it may be asked.
func (e *examination) following(ctx context.Context) {
	e.each(func(p *probe) {
		if p.found.Role != "leader" {
			return
		}
		limited, cancel := context.WithTimeout(ctx, e.plan.Connect)
		defer cancel()
		text, err := word(limited, p.target.dial(e.plan.TLS), "mntr")
		if n, ok := parseFollowing(text); err == nil && ok {
			e.report.Following = &n
		}
	})
}

// parseFollowing reads the answer of a leader to mntr.
func parseFollowing(text string) (int, bool) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if name != "zk_synced_followers" {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		return int(n), err == nil
	}
	return 0, false
}
