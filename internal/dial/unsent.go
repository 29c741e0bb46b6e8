//go:build linux || darwin

package dial

import (
	"net"
	"runtime"
	"syscall"
)

const (
	// unsent is how many bytes the kernel holds back. Otherwise these are hundreds of kB, and heartbeats wait behind
	// them.
	unsent = 16 << 10
	// mostWraps bounds the search for the TCP connection. Some return themselves.
	mostWraps = 8
)

// notsentLowat is TCP_NOTSENT_LOWAT, which package syscall does not have.
var notsentLowat = map[string]int{"linux": 25, "darwin": 0x201}[runtime.GOOS]

// boundUnsent bounds what the kernel holds back. A dialer's connection can wrap that of TCP, with a method NetConn
// like that of tls.Conn. For others, boundUnsent does nothing.
func boundUnsent(c net.Conn) {
	for range mostWraps {
		outer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = outer.NetConn()
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok || tcp == nil {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, notsentLowat, unsent)
	})
}
