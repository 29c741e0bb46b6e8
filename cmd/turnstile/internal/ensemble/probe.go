package ensemble

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
)

// probe is one server under examination.
type probe struct {
	target Target
	plan   *Plan
	found  Server

	m      *session.Manager
	s      *session.Session // nil: not usable
	marker string           // the path of its own node; "": there is none
	czxid  int64
}

// open asks the server who it is, and opens a session there.
func (p *probe) open(ctx context.Context) {
	if p.target.err != nil {
		p.found.Error = p.plan.plain(p.target.err)
		return
	}
	limited, cancel := context.WithTimeout(ctx, p.plan.Connect)
	defer cancel()
	text, err := p.target.word(limited, p.plan.TLS, "srvr")
	if err != nil && p.target.talk(limited, p.plan.TLS, func(net.Conn) error { return nil }) != nil {
		p.found.Error = p.plan.plain(err)
		return
	}
	var serving bool
	if p.found.Version, p.found.Role, serving = parseServing(text); !serving {
		p.found.Error = notServing
		return
	}
	p.found.Shortest = millis(p.target.shortest(limited, p.plan.TLS))
	opts := append(slices.Clone(p.plan.Options), session.WithDialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return p.target.Dial(ctx, nil) // whatever address it is given; package session speaks TLS
	}))
	if p.m, err = session.Connect(limited, p.target.Name, opts...); err == nil {
		p.s, err = p.m.Session(limited)
	}
	if err != nil {
		p.found.Error = p.plan.plain(err)
		return
	}
	p.found.Granted = millis(p.s.Timeout())
}

// notServing is why a server that runs cannot be used.
const notServing = "it runs, but serves no clients: it has no leader"

// plain returns an error in plain words.
func (p *Plan) plain(err error) string {
	text := err.Error()
	switch {
	case errors.Is(err, errSilent):
		return fmt.Sprintf("%v within %v", errSilent, p.Connect)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("it does not answer within %v", p.Connect)
	case strings.Contains(text, "connection refused"):
		return "it refuses connections: no server runs there"
	case errors.Is(err, zk.ErrAuthFailed):
		return "it refuses the identity (--auth)"
	case strings.Contains(text, "no such host"):
		return "the name does not exist"
	}
	return text
}

// mark makes the probe's own node.
func (p *probe) mark(ctx context.Context, dir, name string) {
	if dir == "" {
		return
	}
	node := path.Join(dir, fmt.Sprintf("%s-%s", name, strings.NewReplacer(":", "-", "/", "-").Replace(p.target.Address)))
	begun := time.Now()
	if _, err := p.s.Enter(ctx, session.NewNode{Dir: dir, Name: path.Base(node), Fixed: true}); err != nil {
		return
	}
	took := time.Since(begun)
	stat, err := p.s.Exists(ctx, node)
	if err != nil || stat == nil {
		return
	}
	p.marker, p.czxid = node, stat.Czxid
	// The leader's clock was read somewhere between the request and the answer.
	if skew := time.UnixMilli(stat.Ctime).Sub(begun.Add(took / 2)); skew.Abs() > took/2+time.Millisecond {
		p.found.Skew = millis(skew)
	}
}

// latency calls f many times, one after another, until an error.
func latency(f func() error) Latency {
	const rounds = 100
	var all []time.Duration
	for range rounds {
		begun := time.Now()
		if f() != nil {
			break
		}
		all = append(all, time.Since(begun))
	}
	if len(all) == 0 {
		return Latency{}
	}
	slices.Sort(all)
	return Latency{len(all), millis(all[(len(all)-1)/2]), millis(all[(len(all)*99-1)/100])}
}

// observe notes the least of Session.Remaining in a time, while nothing is sent but heartbeats. Rounds of these are hundreds of
// milliseconds apart.
func (p *probe) observe(ctx context.Context, length time.Duration) {
	const sampling = 10 * time.Millisecond
	end := time.NewTimer(length)
	defer end.Stop()
	tick := time.NewTicker(sampling)
	defer tick.Stop()
	least := p.s.Remaining()
	for {
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			p.found.Remaining = millis(least)
			return
		case <-tick.C:
			least = min(least, p.s.Remaining())
		}
	}
}
