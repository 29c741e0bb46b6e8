package logbook

import (
	"cmp"
	"net"
)

// Target is one address to dial, and the host that it belongs to. If a name could not be resolved, there is
// only the host.
type Target struct {
	Addr string
	Host string // as in the connect string; TLS verifies it
}

// Name returns host and port as in the connect string.
func (t Target) Name() string {
	if t.Addr == "" {
		return t.Host
	}
	_, port, err := net.SplitHostPort(t.Addr)
	if err != nil {
		return t.Addr
	}
	return net.JoinHostPort(t.Host, port)
}

// String returns the name, and the address if it is another text.
func (t Target) String() string {
	if name := t.Name(); name != t.Addr && t.Addr != "" {
		return name + " (" + t.Addr + ")"
	}
	return t.Name()
}

// key is the address, or the host if there is none. An outage remembers one failure for each key.
func (t Target) key() string { return cmp.Or(t.Addr, t.Host) }
