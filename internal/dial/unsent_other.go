//go:build !linux && !darwin

package dial

import "net"

// boundUnsent does nothing: this system has no such bound, and only the window of package wire bounds what waits.
func boundUnsent(net.Conn) {}
