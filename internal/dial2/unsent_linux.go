package dial

import (
	"net"
	"syscall"
)

// unsent is how many bytes of a connection the kernel takes before it can send them. Without a bound it takes
// hundreds of kB, and heartbeats wait behind them.
const unsent = 16 << 10

// tcpNotsentLowat is TCP_NOTSENT_LOWAT, which package syscall does not have.
const tcpNotsentLowat = 25

// boundUnsent bounds the bytes that the kernel holds back. A connection of a dialer of the user can wrap that of TCP, and
// has a method NetConn then, as a tls.Conn has. For others, boundUnsent does nothing.
func boundUnsent(c net.Conn) {
	for {
		outer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = outer.NetConn()
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // without it, only the window bounds what waits
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotsentLowat, unsent)
	})
}
