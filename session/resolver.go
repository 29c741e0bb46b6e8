package session

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// WithResolver has the manager ask which servers there are, for example in DNS (SRV records), in Consul, or in a
// file. The servers are written as in a connect string: a host, with or without a port. With [WithTLS], the host is
// what is verified, so names are better than addresses. Servers that cannot be one are left out, and the log names
// them.
//
// The connect string may be empty then, or have only a chroot, such as "/app". Servers that it has are used until the
// resolver has answered for the first time.
//
// The manager asks when it dials: for the first connection, after each disconnection, and again whenever it has tried
// all servers or has dialled for 10 s. While it is connected, it does not ask. So a server that was added or removed
// counts from the next dial on.
//
// The context of the call ends after 10 s. The resolver should return then. It is called by
// one goroutine at a time. If it fails or names no server, or has not answered after half a second, the last
// servers that it named are dialled. If there are none, the manager asks again after a wait of [WithBackoff]. The log,
// and the errors of [Connect] and [Manager.Session], say why. A resolver that panics ends the program.
//
// Default: the servers of the connect string.
func WithResolver(resolve func(ctx context.Context) ([]string, error)) Option {
	return option(func(c *config) error {
		if resolve == nil {
			return misuse.Invalidf("nil resolver")
		}
		c.resolve = resolve
		return nil
	})
}
