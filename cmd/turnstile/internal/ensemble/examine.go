package ensemble

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/session"
)

// Plan says what to examine, and how.
type Plan struct {
	Servers []string // host:port
	Path    string   // with the chroot
	Options []session.Option
	TLS     *tls.Config   // nil: plain TCP
	Timeout time.Duration // the session timeout to ask for
	Connect time.Duration // how long to try to open a session
}

// examination is one run.
type examination struct {
	plan   Plan
	report *Report
	probes []*probe
	marker string // the name of nodes of its own
}

// Examine examines the servers. All nodes that it makes are gone when it returns, or go with their sessions: they are
// ephemeral, or containers that servers remove. It fails with ctx's
// error only.
func Examine(ctx context.Context, p Plan) (*Report, error) {
	e := &examination{
		plan:   p,
		marker: "turnstile-check-" + strings.ToLower(rand.Text()),
		report: &Report{
			Path: p.Path, Asked: p.Timeout, Listed: len(p.Servers),
			Rights: Rights{Unknown, Unknown, Unknown}, Containers: Unknown,
		},
	}
	defer e.close()
	e.open(ctx)
	if first := e.first(); first != nil {
		e.configuration(ctx, first)
		e.rights(ctx, first)
	}
	e.each(func(p *probe) { p.mark(ctx, e.report.Tried, e.marker) })
	e.compare(ctx)
	e.each(func(p *probe) {
		p.found.Read = latency(func() error { _, err := p.s.Exists(ctx, "/"); return err })
		if p.marker == "" {
			return
		}
		p.found.Write = latency(func() error { _, err := p.s.Set(ctx, p.marker, nil, -1); return err })
		p.observe(ctx, p.s.Timeout()*6/10)
	})
	e.words(ctx)
	for _, p := range e.probes {
		e.report.Servers = append(e.report.Servers, p.found)
	}
	Judge(e.report)
	return e.report, ctx.Err()
}

// each calls f for all usable servers at once.
func (e *examination) each(f func(*probe)) {
	var g errgroup.Group
	for _, p := range e.probes {
		if p.s != nil {
			g.Go(func() error { f(p); return nil })
		}
	}
	_ = g.Wait()
}

// open opens a session at each address.
func (e *examination) open(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, e.plan.Connect)
	defer cancel()
	var g errgroup.Group
	for _, t := range resolve(limited, e.plan.Servers) {
		p := &probe{target: t, plan: &e.plan, found: Server{Name: t.Name, Address: t.Address, Same: Unknown}}
		e.probes = append(e.probes, p)
		g.Go(func() error { p.open(ctx); return nil })
	}
	_ = g.Wait()
}

func (e *examination) close() {
	for _, p := range e.probes {
		if p.m != nil {
			_ = p.m.Close()
		}
	}
}

// first returns the first usable server.
func (e *examination) first() *probe {
	for _, p := range e.probes {
		if p.s != nil {
			return p
		}
	}
	return nil
}

// rights tries what locks do, with nodes of its own in the directory at the path or the nearest that exists
// above it.
func (e *examination) rights(ctx context.Context, p *probe) {
	dir, err := nearest(ctx, p.s, e.plan.Path)
	if err != nil {
		return
	}
	r := e.report
	r.Tried = dir
	_, _, err = p.s.Children(ctx, dir)
	r.Rights.Read = allowed(err)
	node := path.Join(dir, e.marker+"-rights")
	// One transaction, which leaves nothing behind and reads nothing.
	results, err := p.s.Multi(ctx, &zk.CreateRequest{Path: node}, &zk.DeleteRequest{Path: node, Version: -1})
	switch {
	case err == nil:
		r.Rights.Create, r.Rights.Delete = Yes, Yes
	case len(results) == 2 && errors.Is(results[1].Error, zk.ErrNoAuth): // the create was not refused
		r.Rights.Create, r.Rights.Delete = Yes, No
	default:
		r.Rights.Create = allowed(err)
	}
	if r.Rights.Create == Yes {
		e.containers(ctx, p.s, node)
	}
}

// containers tries whether the servers know containers.
func (e *examination) containers(ctx context.Context, s *session.Session, node string) {
	_, err := s.Create(ctx, node, nil, session.Container)
	switch {
	case err == nil:
		e.report.Containers = Yes
		// Servers remove a container only if it has had a child.
		_, _ = s.Enter(ctx, session.NewNode{Dir: node, Name: "child", Fixed: true})
		_ = s.Delete(ctx, node+"/child", -1)
		_ = s.Delete(ctx, node, -1)
	case !errors.Is(err, zk.ErrNoAuth) && !errors.Is(err, zk.ErrConnectionClosed) && !errors.Is(err, session.ErrLost):
		e.report.Containers = No
	}
}

// nearest returns the path, or the nearest node above it that exists.
func nearest(ctx context.Context, s *session.Session, p string) (string, error) {
	for {
		stat, err := s.Exists(ctx, p)
		switch {
		case errors.Is(err, zk.ErrNoAuth): // there is a node, which this client may not read
			return p, nil
		case err != nil, stat != nil, p == "/":
			return p, err
		}
		p = path.Dir(p)
	}
}

// allowed says whether a server has refused a request for lack of rights.
func allowed(err error) Answer {
	switch {
	case err == nil:
		return Yes
	case errors.Is(err, zk.ErrNoAuth):
		return No
	}
	return Unknown
}

// compare looks on all servers for the node that the first made.
func (e *examination) compare(ctx context.Context) {
	var first *probe
	for _, p := range e.probes {
		if p.marker != "" {
			first = p
			break
		}
	}
	if first == nil {
		return
	}
	first.found.Same = Yes
	e.each(func(p *probe) {
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

// configuration reads the ensemble's own configuration, which has lines server.1=host:2888:3888:participant;0.0.0.0:2181. A
// standalone server has none.
func (e *examination) configuration(ctx context.Context, p *probe) {
	data, _, err := p.s.Get(ctx, "/zookeeper/config")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(data)) {
		switch {
		case !strings.HasPrefix(line, "server."):
		case strings.Contains(line, ":observer"):
			e.report.Observers++
		default:
			e.report.Voters++
		}
	}
}

// words asks the servers for what no request tells.
func (e *examination) words(ctx context.Context) {
	var mu sync.Mutex
	e.each(func(p *probe) {
		limited, cancel := context.WithTimeout(ctx, e.plan.Connect)
		defer cancel()
		p.found.ShortBuffer = Unknown
		if takes, known := p.target.takesUsual(limited, e.plan.TLS); known {
			p.found.ShortBuffer = map[bool]Answer{true: No, false: Yes}[takes]
		}
		if p.found.Role != "leader" {
			return
		}
		text, err := p.target.word(limited, e.plan.TLS, "mntr")
		if m := followers.FindStringSubmatch(text); err == nil && m != nil {
			n, _ := strconv.Atoi(m[1])
			mu.Lock()
			defer mu.Unlock()
			e.report.Following = &n
		}
	})
}
