// Package ensemble finds out whether the servers of an ensemble are good for locks: see [Examine].
package ensemble

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/internal/dial"
	"github.com/turnstile-go/turnstile/session"
)

// target is one address of a server.
type target struct {
	name    string // host:port, as in the connect string
	address string // ip:port; "" if the name could not be resolved
	err     error  // why
}

// resolve returns all addresses of the servers.
func resolve(ctx context.Context, servers []dial.Server) (out []target) {
	seen := map[string]bool{}
	for _, s := range servers {
		name := net.JoinHostPort(s.Host, s.Port)
		ips, err := net.DefaultResolver.LookupHost(ctx, s.Host)
		if err != nil {
			out = append(out, target{name: name, err: err})
		}
		for _, ip := range ips {
			if t := (target{name: name, address: net.JoinHostPort(ip, s.Port)}); !seen[t.address] {
				seen[t.address] = true
				out = append(out, t)
			}
		}
	}
	return out
}

// connect opens a session at the target.
func (t target) connect(ctx context.Context, opts []session.Option) (*session.Manager, *session.Session, error) {
	m, err := session.Connect(ctx, t.name, append(opts[:len(opts):len(opts)], session.WithDialer(
		func(ctx context.Context, network, _ string) (net.Conn, error) { // whatever address it is given
			return new(net.Dialer).DialContext(ctx, network, t.address)
		}))...)
	if err != nil {
		return nil, nil, err
	}
	s, err := m.Session(ctx)
	return m, s, err
}

// errSilent says that a server has accepted a connection, and had not answered when the time to wait was over. A server that
// hangs looks like that, since the kernel accepts connections for it.
var errSilent = errors.New("it accepted the connection, and did not answer")

// word sends a four-letter word and returns the answer. It returns when the server has closed the
// connection. If ctx ends before anything has come, it fails with errSilent.
func (t target) word(ctx context.Context, cfg *tls.Config, w string) (string, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", t.address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if cfg != nil {
		own := cfg.Clone()
		if own.ServerName == "" {
			own.ServerName, _, _ = net.SplitHostPort(t.name)
		}
		c = tls.Client(c, own)
	}
	var b bytes.Buffer
	const longest = 16 << 20 // the word cons has a line for each connection
	if _, err = io.WriteString(c, w); err == nil {
		_, err = io.Copy(&b, io.LimitReader(c, longest))
	}
	switch {
	case b.Len() > 0:
		err = nil // a server may close a connection roughly
	case err != nil && ctx.Err() != nil:
		err = errSilent
	}
	return b.String(), err
}

// parseServing reads the answer to srvr. Servers answer otherwise if the word is not allowed, or if they do not
// serve clients.
func parseServing(text string) (version, role string, serving bool) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if v, ok := strings.CutPrefix(line, "Zookeeper version: "); ok {
			version, _, _ = strings.Cut(strings.ReplaceAll(v, ",", "-"), "-")
		}
		if r, ok := strings.CutPrefix(line, "Mode: "); ok {
			role = r
		}
	}
	return version, role, !strings.Contains(text, "not currently serving requests")
}

// Seen is what a server says of the connection of a session.
type Seen struct {
	Client  string // ip:port
	Silence time.Duration
	Timeout time.Duration // of the session
}

// consLine is a line of the answer to cons: the client, the session, its timeout, and when it was answered last.
var consLine = regexp.MustCompile(`(?m)^ */(\S+?)\[.*\bsid=(0x[0-9a-f]+),.*\bto=([0-9]+),.*\blresp=([0-9]+),`)

// LastSeen asks all servers for the connection of a session, by the word cons. seen is nil if none has it. asked is how
// many servers have answered, of all.
//
// A server stamps the last answer to each client by a clock that starts with it, and has no word for that clock. So
// LastSeen opens a session of its own first, and counts from the stamp of that.
func LastSeen(ctx context.Context, connect string, opts []session.Option, cfg *tls.Config, id int64) (seen *Seen, asked, all int) {
	servers, _, _ := dial.Parse(connect) // a session has shown that it is valid
	targets := resolve(ctx, servers)
	for _, t := range targets {
		m, own, err := t.connect(ctx, opts)
		if err != nil {
			continue
		}
		defer m.Close()
		_, err = own.Exists(ctx, "/")
		answered := time.Now()
		text, wordErr := t.word(ctx, cfg, "cons")
		if errors.Join(err, wordErr) != nil {
			continue
		}
		now := map[int64]time.Duration{} // by session: when it was answered, by the server's clock
		for _, line := range consLine.FindAllStringSubmatch(text, -1) {
			sid, _ := strconv.ParseUint(line[2], 0, 64)
			timeout, _ := strconv.Atoi(line[3])
			at, _ := strconv.ParseInt(line[4], 10, 64)
			if now[int64(sid)] = time.Duration(at) * time.Millisecond; int64(sid) == id {
				seen = &Seen{Client: line[1], Timeout: time.Duration(timeout) * time.Millisecond}
			}
		}
		if _, ok := now[own.ID()]; ok {
			asked++
		}
		if seen != nil {
			seen.Silence = max(0, now[own.ID()]+time.Since(answered)-now[id])
			return seen, asked, len(targets)
		}
	}
	return nil, asked, len(targets)
}
