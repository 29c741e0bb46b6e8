package dial

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

const defaultPort = "2181"

// Parse splits "h1:2181,h2:2181/chroot" into servers and chroot. There may be no server. The chroot is "" or a path
// without a trailing slash.
//
// A comma in the chroot nearly always means that the user has written the chroot after each server. If we took that
// for a path, this client would lock other nodes than its neighbours. So it is with semicolons and question marks.
func Parse(s string) (servers []Server, chroot string, err error) {
	switch {
	case strings.Contains(s, "://"):
		return nil, "", misuse.Invalidf("connect string %q: it is written without a scheme: %q", s, respell(s))
	case strings.Contains(s, ";"):
		return nil, "", misuse.Invalidf("connect string %q: servers are separated by commas: %q", s, respell(s))
	case strings.Contains(s, "?"):
		return nil, "", misuse.Invalidf("connect string %q: it has no parameters, since all settings are options: %q", s, respell(s))
	}
	list := s
	if i := strings.IndexByte(s, '/'); i >= 0 {
		list, chroot = s[:i], s[i:]
		if chroot == "/" {
			chroot = ""
		}
	}
	if strings.Contains(chroot, ",") {
		return nil, "", misuse.Invalidf("connect string %q: the chroot is written once, behind the last server, and has no comma: %q", s, respell(s))
	}
	if chroot != "" {
		if err := misuse.ValidatePath(chroot); err != nil {
			return nil, "", misuse.Invalidf("connect string %q: chroot: %v", s, err)
		}
	}
	if strings.TrimSpace(list) == "" {
		return nil, chroot, nil
	}
	for _, item := range strings.Split(list, ",") {
		server, err := parseHostPort(strings.TrimSpace(item))
		if err != nil {
			return nil, "", misuse.Invalidf("connect string %q: %v", s, err)
		}
		servers = append(servers, server)
	}
	return servers, chroot, nil
}

// respell returns the connect string as it should be written.
func respell(s string) string {
	var servers []string
	var chroot string
	s, _, _ = strings.Cut(s, "?")
	for _, item := range strings.Split(strings.ReplaceAll(s, ";", ","), ",") {
		item = strings.TrimSpace(item)
		if i := strings.Index(item, "://"); i >= 0 {
			item = item[i+len("://"):]
		}
		server, path, ok := strings.Cut(item, "/")
		if ok && chroot == "" {
			chroot = "/" + path
		}
		servers = append(servers, server)
	}
	return strings.Join(servers, ",") + chroot
}

func parseHostPort(item string) (Server, error) {
	if item == "" {
		return Server{}, misuse.Invalidf("empty server name")
	}
	if strings.ContainsAny(item, " \t\r\n\x00") {
		return Server{}, misuse.Invalidf("server %q contains white space or NUL", item)
	}
	host, port := item, defaultPort
	switch {
	case strings.HasPrefix(item, "["):
		if strings.HasSuffix(item, "]") {
			host = item[1 : len(item)-1]
			break
		}
		fallthrough
	case strings.Count(item, ":") == 1:
		var err error
		if host, port, err = net.SplitHostPort(item); err != nil {
			return Server{}, misuse.Invalidf("server %q: %v", item, err)
		}
	case strings.Contains(item, ":") && net.ParseIP(item) == nil:
		return Server{}, misuse.Invalidf("server %q: an IPv6 address with a port is written [address]:port", item)
	case strings.Contains(item, ":"):
		if at := strings.LastIndexByte(item, ':'); looksLikePort(item[at+1:]) {
			return Server{}, misuse.Invalidf("server %q: is this [%s]:%s, or the address [%[1]s]?", item, strings.TrimSuffix(item[:at], ":"), item[at+1:])
		}
	}
	if host == "" {
		return Server{}, misuse.Invalidf("server %q has no host", item)
	}
	if _, err := netip.ParseAddr(host); err != nil && strings.ContainsAny(host, "[]:;?#@\\") { // no name has them
		return Server{}, misuse.Invalidf("server %q: %q is neither a name nor an address", item, host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return Server{}, misuse.Invalidf("server %q: port %q is not a number from 1 to 65535", item, port)
	}
	return Server{Host: host, Port: port}, nil
}

func looksLikePort(part string) bool {
	return len(part) == 4 && strings.Trim(part, "0123456789") == ""
}
