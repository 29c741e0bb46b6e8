//go:build linux || darwin

package dial

import (
	"net"
	"syscall"
	"testing"
)

// wrapped is a connection of a dialer that wraps that of TCP, any number of times.
type wrapped struct{ net.Conn }

func (w wrapped) NetConn() net.Conn { return w.Conn }

// itself returns itself.
type itself struct{ net.Conn }

func (c itself) NetConn() net.Conn { return c }

// endless returns another wrapper each time.
type endless struct{ net.Conn }

func (c endless) NetConn() net.Conn { return endless{c.Conn} }

// TestUnsent bounds the bytes that the kernel holds back, on connections of TCP, also on those that are wrapped. One that
// wraps itself, or has wrappers without an end, does no harm.
func TestUnsent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"bare":    func(c net.Conn) net.Conn { return c },
		"wrapped": func(c net.Conn) net.Conn { return wrapped{wrapped{c}} },
	} {
		c, err := net.Dial("tcp", l.Addr().String())
		must(t, err)
		boundUnsent(wrap(c))
		raw, err := c.(*net.TCPConn).SyscallConn()
		must(t, err)
		var got int
		if err := raw.Control(func(fd uintptr) { got, _ = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, notsentLowat) }); err != nil {
			t.Fatal(err)
		}
		if got != unsent {
			t.Errorf("%s: the kernel holds back %d bytes, want %d", name, got, unsent)
		}
		c.Close()
	}
	boundUnsent(itself{})
	boundUnsent(endless{})
	boundUnsent(wrapped{nil})
	boundUnsent(wrapped{(*net.TCPConn)(nil)})
}
