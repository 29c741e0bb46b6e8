package zktest

import (
	"slices"
	"strings"
	"time"
)

// A Request is a client's request as it arrived at a [Proxy] or a [Server].
type Request struct {
	Op      Op
	Path    string    // the first one if it has several; empty if it has none
	Xid     int32     // the client's number for the request; negative for pings, watch events and identities
	Session int64     // 0 before the handshake; for OpConnect, the session that the client asks for
	Conn    int64     // the number of the client's connection, counted from 1
	At      time.Time // when its last byte arrived
}

// A Match selects requests. It may be called from several goroutines at once.
type Match func(Request) bool

// On matches requests of exactly this kind whose path begins with pathPrefix. OpCreate does not stand for create2,
// createContainer or createTTL: see [Any]. An empty prefix matches every path, and requests without a path.
func On(op Op, pathPrefix string) Match {
	return func(r Request) bool { return r.Op == op && strings.HasPrefix(r.Path, pathPrefix) }
}

// Any matches requests of any of these kinds. Without arguments it matches every request.
func Any(ops ...Op) Match {
	return func(r Request) bool { return len(ops) == 0 || slices.Contains(ops, r.Op) }
}
