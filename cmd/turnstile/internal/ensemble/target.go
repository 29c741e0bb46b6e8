package ensemble

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
)

// Target is one address of a server.
type Target struct {
	Name    string // host:port, as in the connect string
	Address string // ip:port; "" if the name could not be resolved
	Err     error  // why
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

// Resolve returns all addresses of the servers.
func Resolve(ctx context.Context, servers []string) []Target {
	var out []Target
	seen := map[string]bool{}
	for _, s := range servers {
		host, port, _ := net.SplitHostPort(s)
		ips, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			out = append(out, Target{Name: s, Err: err})
			continue
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

// plainDial returns a function that makes a TCP connection to the target, whatever address it is given.
func (t Target) plainDial() func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", t.Address)
	}
}

// dial is plainDial with TLS, if there is a configuration.
func (t Target) dial(cfg *tls.Config) Dial {
	return func(ctx context.Context) (net.Conn, error) {
		c, err := t.plainDial()(ctx, "", "")
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
}
