package ensemble

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/dial"
	"github.com/turnstile-go/turnstile/session"
)

// Report is what was found out.
type Report struct {
	Problems []string // why no lock can be had
	Warnings []string
	Servers  []Server
	Voters   int      // servers in the ensemble's own configuration; 0: it cannot be read
	Path     string   // with the chroot
	Tried    string   // the directory in which rights were tried
	Refused  []string // what this identity may not do there

	Asked  time.Duration // the session timeout
	Listed int           // servers in --zk
}

// Server is what was found out about one address.
type Server struct {
	Name    string // as in --zk, with the address that was dialled if that is another
	Error   string // why it cannot be used
	Version string
	Role    string

	Granted          time.Duration // the session timeout
	MedianWrite, P99 time.Duration // of many writes, one after another; 0: none could be made
}

// Usable reports whether a session could be opened at the server.
func (s Server) Usable() bool { return s.Error == "" }

// Plan says what to examine, and how.
type Plan struct {
	Connect string // the connect string
	Path    string // below its chroot
	Options []session.Option
	TLS     *tls.Config   // nil: plain TCP
	Timeout time.Duration // the session timeout that the options ask for
	Within  time.Duration // how long to try to open a session
}

// probe is one server under examination.
type probe struct {
	target
	plan  *Plan
	found Server
	m     *session.Manager
	s     *session.Session // nil: not usable
}

// Examine examines the servers. All nodes that it makes are gone when it returns, or go with their sessions: they are
// ephemeral. It fails with ctx's error, or if the connect string is wrong.
func Examine(ctx context.Context, plan Plan) (*Report, error) {
	servers, chroot, err := dial.Parse(plan.Connect)
	if err != nil {
		return nil, err
	}
	r := &Report{Path: "/" + strings.Trim(chroot+plan.Path, "/"), Asked: plan.Timeout, Listed: len(servers)}
	limited, cancel := context.WithTimeout(ctx, plan.Within)
	defer cancel()
	var probes, usable []*probe
	for _, t := range resolve(limited, servers) {
		p := &probe{target: t, plan: &plan, found: Server{Name: t.name}}
		if t.address != t.name && t.address != "" {
			p.found.Name += " " + t.address
		}
		probes = append(probes, p)
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
		r.tryRights(ctx, usable[0].s)
		if r.Tried != "" && len(r.Refused) == 0 {
			each(usable, func(p *probe) { p.measure(ctx, r) })
		}
	}
	for _, p := range probes {
		r.Servers = append(r.Servers, p.found)
	}
	r.judge()
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
	limited, cancel := context.WithTimeout(ctx, p.plan.Within)
	defer cancel()
	text, err := "", p.err
	if err == nil {
		text, err = p.word(limited, p.plan.TLS, "srvr")
	}
	serving := true
	if err == nil {
		p.found.Version, p.found.Role, serving = parseServing(text)
	}
	switch {
	case !serving:
		p.found.Error = "it runs, but serves no clients: it has no leader"
		return
	case err == nil || errors.Is(err, io.EOF):
		p.m, p.s, err = p.connect(limited, p.plan.Options)
	}
	if err != nil {
		p.s = nil
		p.found.Error = p.plan.plain(err)
		return
	}
	p.found.Granted = p.s.Timeout()
}

// plain returns an error in plain words.
func (p *Plan) plain(err error) string {
	text := err.Error()
	switch {
	case errors.Is(err, errSilent):
		return fmt.Sprintf("%v within %v", errSilent, p.Within)
	case strings.Contains(text, "connection refused"):
		return "it refuses connections: no server runs there"
	case errors.Is(err, zk.ErrAuthFailed):
		return "it refuses the identity (--auth)"
	case strings.Contains(text, "no such host"):
		return "the name does not exist"
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("it does not answer within %v", p.Within)
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
		if strings.HasPrefix(line, "server.") && !strings.Contains(line, ":observer") {
			r.Voters++
		}
	}
}

// touch makes a node below a directory and deletes it in one transaction, which leaves nothing behind and reads nothing.
func touch(ctx context.Context, s *session.Session, dir string) ([]zk.MultiResponse, error) {
	node := path.Join(dir, "turnstile-check-"+strings.ToLower(rand.Text()))
	return s.Multi(ctx, &zk.CreateRequest{Path: node}, &zk.DeleteRequest{Path: node, Version: -1})
}

// tryRights tries what locks do, with nodes of its own in the directory at the path or the nearest that exists above it.
func (r *Report) tryRights(ctx context.Context, s *session.Session) {
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
	r.Tried = dir
	refused := func(err error, what string) {
		if errors.Is(err, zk.ErrNoAuth) {
			r.Refused = append(r.Refused, what)
		}
	}
	_, _, err := s.Children(ctx, dir)
	refused(err, "list")
	results, err := touch(ctx, s, dir)
	if len(results) == 2 && errors.Is(results[1].Error, zk.ErrNoAuth) { // the create was not refused
		refused(results[1].Error, "delete nodes in")
	} else {
		refused(err, "create nodes in")
	}
}

// measure writes many times, until an error.
func (p *probe) measure(ctx context.Context, r *Report) {
	const rounds = 100
	var all []time.Duration
	for range rounds {
		begun := time.Now()
		if _, err := touch(ctx, p.s, r.Tried); err != nil {
			break
		}
		all = append(all, time.Since(begun))
	}
	if n := len(all); n > 0 {
		slices.Sort(all)
		p.found.MedianWrite, p.found.P99 = all[(n-1)/2], all[(n*99-1)/100]
	}
}
