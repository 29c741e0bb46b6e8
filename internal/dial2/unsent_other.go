//go:build !linux

package dial

import "net"

// boundUnsent does nothing on this system: only the window bounds what waits in the kernel.
func boundUnsent(net.Conn) {}
