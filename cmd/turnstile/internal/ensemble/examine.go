package ensemble

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
)

// Report is what was found out. The names of the JSON fields are part of the output of the command.
type Report struct {
	Verdict    Verdict  `json:"verdict"`
	Problems   []string `json:"problems"` // why no lock can be had
	Warnings   []string `json:"warnings"`
	Servers    []Server `json:"servers"`
	Voters     int      `json:"voters,omitempty"` // servers in the ensemble's own configuration, if it can be read
	Observers  int      `json:"observers,omitempty"`
	Path       string   `json:"path"` // with the chroot
	Tried      string   `json:"tried,omitempty"`
	Rights     Rights   `json:"rights"`
	Containers Answer   `json:"containers"`

	Asked  time.Duration `json:"-"`
	Listed int           `json:"-"` // servers in --zk
}

// Verdict is the result in a word: good, warnings or unusable.
type Verdict string

// Answer is yes, no or unknown.
type Answer string

const (
	Good     Verdict = "good"
	Warned   Verdict = "warnings"
	Unusable Verdict = "unusable"

	Yes     Answer = "yes"
	No      Answer = "no"
	Unknown Answer = "unknown"
)

// Rights are what the identity may do at the path.
type Rights struct {
	Create Answer `json:"create"`
	Read   Answer `json:"read"`
	Delete Answer `json:"delete"`
}

// Server is what was found out about one address.
type Server struct {
	Name    string `json:"server"`          // as in --zk
	Address string `json:"address"`         // that was dialled
	Error   string `json:"error,omitempty"` // why it cannot be used
	Version string `json:"version,omitempty"`
	Role    string `json:"role,omitempty"`

	Read        Latency `json:"read"`
	Write       Latency `json:"write"`
	Granted     Millis  `json:"timeoutMs,omitempty"`         // the session timeout
	Shortest    Millis  `json:"shortestTimeoutMs,omitempty"` // that the server grants; two ticks by default
	Remaining   Millis  `json:"remainingMs,omitempty"`       // the least that Session.Remaining was
	Run         Millis  `json:"runRemainingMs,omitempty"`    // Remaining without the default grace period of run; Examine leaves it
	Same        Answer  `json:"sameEnsemble"`                // it has the node that another server was given
	ShortBuffer Answer  `json:"shortBuffer"`                 // its jute.maxbuffer is smaller than the default
}

// Usable reports whether a session could be opened at the server.
func (s Server) Usable() bool { return s.Error == "" }

// Latency is that of one kind of request.
type Latency struct {
	Rounds int    `json:"rounds"`
	Median Millis `json:"medianMs"`
	P99    Millis `json:"p99Ms"`
}

// Millis is a time in milliseconds.
type Millis float64

func millis(d time.Duration) Millis { return Millis(d.Microseconds()) / 1000 }

// Duration returns the time.
func (m Millis) Duration() time.Duration {
	return time.Duration(float64(m) * float64(time.Millisecond))
}

// Plan says what to examine, and how.
type Plan struct {
	Servers []string // host:port
	Path    string   // with the chroot
	Options []session.Option
	TLS     *tls.Config   // nil: plain TCP
	Timeout time.Duration // the session timeout to ask for
	Connect time.Duration // how long to try to open a session
}

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

// Examine examines the servers. All nodes that it makes are gone when it returns, or go with their sessions: they are
// ephemeral, or containers that servers remove. It fails with ctx's error only.
func Examine(ctx context.Context, plan Plan) (*Report, error) {
	marker := "turnstile-check-" + strings.ToLower(rand.Text())
	r := &Report{Path: plan.Path, Asked: plan.Timeout, Listed: len(plan.Servers), Rights: Rights{Unknown, Unknown, Unknown}, Containers: Unknown}
	limited, cancel := context.WithTimeout(ctx, plan.Connect)
	defer cancel()
	var probes, usable []*probe
	for _, t := range resolve(limited, plan.Servers) {
		probes = append(probes, &probe{target: t, plan: &plan, found: Server{Name: t.Name, Address: t.Address, Same: Unknown, ShortBuffer: Unknown}})
	}
	each(probes, func(p *probe) { p.open(ctx) })
	for _, p := range probes {
		if p.m != nil {
			defer p.m.Close()
		}
		if p.s != nil {
			usable = append(usable, p)
		}
	}
	if len(usable) > 0 {
		r.readConfiguration(ctx, usable[0].s)
		r.tryRights(ctx, usable[0].s, marker)
	}
	each(usable, func(p *probe) { p.mark(ctx, r.Tried, marker) })
	compare(ctx, usable)
	each(usable, func(p *probe) { p.measure(ctx) })
	for _, p := range probes {
		r.Servers = append(r.Servers, p.found)
	}
	Judge(r)
	return r, ctx.Err()
}

// each calls f for all servers at once.
func each(probes []*probe, f func(*probe)) {
	var g sync.WaitGroup
	for _, p := range probes {
		g.Go(func() { f(p) })
	}
	g.Wait()
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
		p.found.Error = "it runs, but serves no clients: it has no leader"
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

// readConfiguration reads the ensemble's own configuration, which has lines server.1=host:2888:3888:participant;0.0.0.0:2181. A
// standalone server has none.
func (r *Report) readConfiguration(ctx context.Context, s *session.Session) {
	data, _, err := s.Get(ctx, "/zookeeper/config")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(data)) {
		switch {
		case !strings.HasPrefix(line, "server."):
		case strings.Contains(line, ":observer"):
			r.Observers++
		default:
			r.Voters++
		}
	}
}

// tryRights tries what locks do, with nodes of its own in the directory at the path or the nearest that exists above it.
func (r *Report) tryRights(ctx context.Context, s *session.Session, marker string) {
	dir := r.Path
	for ; ; dir = path.Dir(dir) {
		stat, err := s.Exists(ctx, dir)
		if err != nil && !errors.Is(err, zk.ErrNoAuth) { // without rights, there is a node, which this client may not read
			return
		}
		if err != nil || stat != nil || dir == "/" {
			break
		}
	}
	allowed := func(err error) Answer {
		switch {
		case err == nil:
			return Yes
		case errors.Is(err, zk.ErrNoAuth):
			return No
		}
		return Unknown
	}
	r.Tried = dir
	_, _, err := s.Children(ctx, dir)
	r.Rights.Read = allowed(err)
	node := path.Join(dir, marker+"-rights")
	// One transaction, which leaves nothing behind and reads nothing.
	results, err := s.Multi(ctx, &zk.CreateRequest{Path: node}, &zk.DeleteRequest{Path: node, Version: -1})
	switch {
	case err == nil:
		r.Rights.Create, r.Rights.Delete = Yes, Yes
	case len(results) == 2 && errors.Is(results[1].Error, zk.ErrNoAuth): // the create was not refused
		r.Rights.Create, r.Rights.Delete = Yes, No
	default:
		r.Rights.Create = allowed(err)
		return
	}
	_, err = s.Create(ctx, node, nil, session.Container)
	switch {
	case err == nil:
		r.Containers = Yes
		// Servers remove a container only if it has had a child.
		_, _ = s.Enter(ctx, session.NewNode{Dir: node, Name: "child", Fixed: true})
		_ = s.Delete(ctx, node+"/child", -1)
		_ = s.Delete(ctx, node, -1)
	case !errors.Is(err, zk.ErrNoAuth) && !errors.Is(err, zk.ErrConnectionClosed) && !errors.Is(err, session.ErrLost):
		r.Containers = No
	}
}

// mark makes the probe's own node.
func (p *probe) mark(ctx context.Context, dir, name string) {
	if dir == "" {
		return
	}
	node := path.Join(dir, name+"-"+strings.NewReplacer(":", "-", "/", "-").Replace(p.target.Address))
	if _, err := p.s.Enter(ctx, session.NewNode{Dir: dir, Name: path.Base(node), Fixed: true}); err != nil {
		return
	}
	if stat, err := p.s.Exists(ctx, node); err == nil && stat != nil {
		p.marker, p.czxid = node, stat.Czxid
	}
}

// compare looks on all servers for the node that the first made.
func compare(ctx context.Context, usable []*probe) {
	i := slices.IndexFunc(usable, func(p *probe) bool { return p.marker != "" })
	if i < 0 {
		return
	}
	first := usable[i]
	first.found.Same = Yes
	each(usable, func(p *probe) {
		if p == first || p.s.Sync(ctx, "/") != nil {
			return
		}
		switch stat, err := p.s.Exists(ctx, first.marker); {
		case err != nil, first.s.Err() != nil: // the node may have gone with its session
		case stat != nil && stat.Czxid == first.czxid:
			p.found.Same = Yes
		default:
			p.found.Same = No
		}
	})
}

// measure measures latencies, and then the least of Session.Remaining while nothing is sent but heartbeats. Rounds of these are
// hundreds of milliseconds apart.
func (p *probe) measure(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, p.plan.Connect)
	defer cancel()
	if takes, known := p.target.takesUsual(limited, p.plan.TLS); known {
		p.found.ShortBuffer = map[bool]Answer{true: No, false: Yes}[takes]
	}
	p.found.Read = latency(func() error { _, err := p.s.Exists(ctx, "/"); return err })
	if p.marker == "" {
		return
	}
	p.found.Write = latency(func() error { _, err := p.s.Set(ctx, p.marker, nil, -1); return err })
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	least := p.s.Remaining()
	for end := time.Now().Add(p.s.Timeout() * 6 / 10); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			least = min(least, p.s.Remaining())
		}
	}
	p.found.Remaining = millis(least)
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
