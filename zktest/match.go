package zktest

import (
	"slices"
	"strings"
	"time"
)

// Request is one request as a [Proxy] or a [Server] saw it come in from a client.
type Request struct {
	Op      Op
	Path    string    // of the first operation, if Op is a multi; empty if there is none
	Xid     int32     // the client's number for it; negative for pings and the like
	Session int64     // 0 while the connection has none; for OpConnect, the one asked for
	Conn    int64     // which of the client connections, counted from 1
	At      time.Time // when the last byte of it arrived
}

// A Match selects requests. It may be called from several goroutines at once.
type Match func(Request) bool

// On matches requests of exactly this kind whose path begins with pathPrefix.
// OpCreate is create alone and not create2, createContainer or createTTL; see
// [Any]. An empty prefix matches any path, and requests without one.
func On(op Op, pathPrefix string) Match {
	return func(r Request) bool { return r.Op == op && strings.HasPrefix(r.Path, pathPrefix) }
}

// Any matches requests of each of these kinds; of every kind when none is
// given.
func Any(ops ...Op) Match {
	return func(r Request) bool { return len(ops) == 0 || slices.Contains(ops, r.Op) }
}
