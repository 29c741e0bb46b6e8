// Package ensemble finds out whether the servers of an ensemble are good for locks: see [Examine].
package ensemble

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/visit"
)

// Target is one address of a server.
type Target struct {
	Name    string // host:port, as in the connect string
	Address string // ip:port; "" if the name could not be resolved
	err     error  // why
}

// Split splits the servers of a connect string, which must be valid, and its chroot ("" if there is none).
func Split(connect string) (servers []string, chroot string) {
	list, chroot, _ := strings.Cut(connect, "/")
	if chroot = strings.TrimRight(chroot, "/"); chroot != "" {
		chroot = "/" + chroot
	}
	for _, s := range strings.Split(list, ",") {
		s = strings.TrimSpace(s)
		if _, _, err := net.SplitHostPort(s); err != nil {
			s = net.JoinHostPort(strings.Trim(s, "[]"), "2181")
		}
		servers = append(servers, s)
	}
	return servers, chroot
}

// resolve returns all addresses of the servers.
func resolve(ctx context.Context, servers []string) (out []Target) {
	seen := map[string]bool{}
	for _, s := range servers {
		host, port, _ := net.SplitHostPort(s)
		ips, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			out = append(out, Target{Name: s, err: err})
		}
		for _, ip := range ips {
			if t := (Target{Name: s, Address: net.JoinHostPort(ip, port)}); !seen[t.Address] {
				seen[t.Address] = true
				out = append(out, t)
			}
		}
	}
	return out
}

// errSilent says that a server has accepted a connection, and had not answered when the time to wait was over. A server that
// hangs looks like that, since the kernel accepts connections for it.
var errSilent = errors.New("it accepted the connection, and did not answer")

// Dial connects to the target, with TLS if there is a configuration.
func (t Target) Dial(ctx context.Context, cfg *tls.Config) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", t.Address)
	if err != nil || cfg == nil {
		return c, err
	}
	own := cfg.Clone()
	if own.ServerName == "" {
		own.ServerName, _, _ = net.SplitHostPort(t.Name)
	}
	secure := tls.Client(c, own)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		if ctx.Err() != nil {
			err = errSilent
		}
		return nil, err
	}
	return secure, nil
}

// talk calls f with a connection that is closed when ctx ends.
func (t Target) talk(ctx context.Context, cfg *tls.Config, f func(c net.Conn) error) error {
	c, err := t.Dial(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	return f(c)
}

// word sends a four-letter word and returns the answer. It returns when the server has closed the
// connection. If ctx ends before anything has come, it fails with errSilent.
func (t Target) word(ctx context.Context, cfg *tls.Config, w string) (string, error) {
	var b bytes.Buffer
	const longest = 16 << 20 // the word cons has a line for each connection
	err := t.talk(ctx, cfg, func(c net.Conn) error {
		_, err := io.WriteString(c, w)
		if err == nil {
			_, err = io.Copy(&b, io.LimitReader(c, longest))
		}
		switch {
		case b.Len() > 0:
			return nil // a server may close a connection roughly
		case err != nil && ctx.Err() != nil:
			return errSilent
		}
		return err
	})
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

// shortest returns the shortest session timeout that a server grants, 0 if it does not say.
func (t Target) shortest(ctx context.Context, cfg *tls.Config) (granted time.Duration) {
	_ = t.talk(ctx, cfg, func(c net.Conn) error {
		out, err := visit.Close(c, visit.Hello{Timeout: time.Millisecond})
		granted = out.Timeout
		return err
	})
	return granted
}

// usualRequest is ZooKeeper's default of jute.maxbuffer.
const usualRequest = 1<<20 - 1

// takesUsual reports whether a server reads a request of the usual length. Servers tell their jute.maxbuffer to nobody but Java's
// tools. But they hang up when they have read the length of a request that is longer. So this sends a handshake for a session
// that does not exist, with bytes behind it. A server that has read it answers that the session is over. It makes no session and
// no node, and writes a line to its own log. A handshake of the least length tells whether the server answers any.
func (t Target) takesUsual(ctx context.Context, cfg *tls.Config) (takes, known bool) {
	const noSession = 1 // numbers of sessions begin with that of the server and the time
	frame := visit.Hello{Timeout: time.Millisecond, Session: noSession}.Frame()
	try := func(frame []byte) bool {
		return t.talk(ctx, cfg, func(c net.Conn) error {
			_, err := c.Write(frame)
			if err == nil {
				_, err = visit.ReadFrame(c)
			}
			return err
		}) == nil
	}
	long := append(bytes.Clone(frame), make([]byte, usualRequest-(len(frame)-4))...)
	binary.BigEndian.PutUint32(long, usualRequest)
	if try(long) {
		return true, true
	}
	return false, try(frame) && !try(long) && ctx.Err() == nil // a connection that was lost for another reason looks the same
}

// Seen is what a server says of the connection of a session.
type Seen struct {
	Client  string // ip:port
	Silence time.Duration
	Timeout time.Duration // of the session
}

// consLine is a line of the answer to cons: the client, the session, its timeout, and when it was answered last.
var consLine = regexp.MustCompile(`(?m)^ */(\S+?)\[.*\bsid=(0x[0-9a-f]+),.*\bto=([0-9]+),.*\blresp=([0-9]+),`)

// LastSeen asks all servers for the connection of a session, by the word cons. seen is nil if none has it. asked is how many
// servers have answered, of all.
//
// A server stamps the last answer to each client by a clock that starts with it, and has no word for that clock. So LastSeen opens a
// session of its own first, and counts from the stamp of that.
func LastSeen(ctx context.Context, servers []string, cfg *tls.Config, session int64) (seen *Seen, asked, all int) {
	targets := resolve(ctx, servers)
	for _, t := range targets {
		if t.err != nil {
			continue
		}
		_ = t.talk(ctx, cfg, func(c net.Conn) error {
			hello := visit.Hello{Timeout: 10 * time.Second}
			if _, err := c.Write(hello.Frame()); err != nil {
				return err
			}
			b, err := visit.ReadFrame(c)
			if err != nil || len(b) < visit.GreetingLength {
				return err
			}
			answered := time.Now()
			own := int64(binary.BigEndian.Uint64(b[8:]))
			text, err := t.word(ctx, cfg, "cons")
			now := map[int64]time.Duration{} // by session: when it was answered, by the server's clock
			for _, m := range consLine.FindAllStringSubmatch(text, -1) {
				id, _ := strconv.ParseUint(m[2], 0, 64)
				timeout, _ := strconv.Atoi(m[3])
				at, _ := strconv.ParseInt(m[4], 10, 64)
				if now[int64(id)] = time.Duration(at) * time.Millisecond; int64(id) == session {
					seen = &Seen{Client: m[1], Timeout: time.Duration(timeout) * time.Millisecond}
				}
			}
			if _, ok := now[own]; ok {
				asked++
			}
			if seen != nil {
				seen.Silence = max(0, now[own]+time.Since(answered)-now[session])
			}
			_, _ = c.Write(visit.CloseFrame())
			_, _ = visit.ReadFrame(c)
			return err
		})
		if seen != nil {
			break
		}
	}
	return seen, asked, len(targets)
}
