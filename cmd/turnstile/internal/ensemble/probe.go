package ensemble

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	if p.target.Err != nil {
		p.found.Error = p.plan.plain(p.target.Err)
		return
	}
	limited, cancel := context.WithTimeout(ctx, p.plan.Connect)
	defer cancel()
	dial := p.target.dial(p.plan.TLS)
	text, err := word(limited, dial, "srvr")
	if err != nil && !answered(limited, dial) {
		p.found.Error = p.plan.plain(err)
		return
	}
	var serving bool
	if p.found.Version, p.found.Role, serving = parseServing(text); !serving {
		p.found.Error = notServing
		return
	}
	p.found.Shortest = millis(shortest(limited, dial))
	opts := append(slices.Clone(p.plan.Options), session.WithDialer(p.target.plainDial()))
	if p.m, err = session.Connect(limited, p.target.Name, opts...); err == nil {
		p.s, err = p.m.Session(limited)
	}
	if err != nil {
		p.found.Error = p.plan.plain(err)
		return
	}
	p.found.Granted = millis(p.s.Timeout())
}

// longest finds the longest request that the server takes.
func (p *probe) longest(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, p.plan.Connect)
	defer cancel()
	n, err := longest(limited, p.target.dial(p.plan.TLS))
	if err != nil {
		p.found.MaxRequestError = p.plan.plain(err)
		return
	}
	p.found.MaxRequest = n
}

// notServing is why a server that runs cannot be used.
const notServing = "it runs, but serves no clients: it has no leader"

// answered reports whether the server accepts connections.
func answered(ctx context.Context, dial Dial) bool {
	c, err := dial(ctx)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

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

// measure measures how long reads and writes take, one after another.
func (p *probe) measure(ctx context.Context, rounds int) {
	p.found.Read = latency(rounds, func() error { _, err := p.s.Exists(ctx, "/"); return err })
	if p.marker != "" {
		p.found.Write = latency(rounds, func() error { _, err := p.s.Set(ctx, p.marker, nil, -1); return err })
	}
}

// latency calls f so many times, until an error.
func latency(rounds int, f func() error) Latency {
	var all []time.Duration
	for range rounds {
		begun := time.Now()
		if f() != nil {
			break
		}
		all = append(all, time.Since(begun))
	}
	slices.Sort(all)
	return Latency{len(all), millis(quantile(all, 0.5)), millis(quantile(all, 0.99))}
}

// quantile returns the smallest value that is not below a share q of sorted ones.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[max(0, i)]
}

// sampling is how often Remaining is asked. It falls between rounds of heartbeats, which are hundreds of
// milliseconds apart.
const sampling = 10 * time.Millisecond

// observe notes the least of Session.Remaining in a time.
func (p *probe) observe(ctx context.Context, length time.Duration) {
	if length <= 0 {
		return
	}
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
