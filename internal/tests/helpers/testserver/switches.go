package testserver

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/switches"
	"github.com/turnstile-go/turnstile/zktest"
)

// Switched is a server in this process with what only the tests of this module do to it.
type Switched struct {
	*zktest.Server
	Switches
}

// Switch returns a server with its switches.
func Switch(srv *zktest.Server) Switched { return Switched{srv, switches.Of(srv).(Switches)} }

// Switches are methods of a [zktest.Server] that users have no need of.
type Switches interface {
	// Expiry returns when the leader will expire a session that is not touched again. That is a tick of the
	// leader's session tracker. It returns false if the leader has expired the session, even if it cannot commit
	// that, and if no server leads.
	Expiry(session int64) (time.Time, bool)

	// ServerOf returns the index of the server that a session is connected to. If it is connected to several, the
	// one with the latest handshake counts. It returns false if the session is not connected.
	ServerOf(session int64) (int, bool)

	// Failure returns an error if server i is past help: its log has the end of a session that is too long for it
	// to read. It returns nil after Close.
	Failure(i int) error

	// DelayLink makes every message from one server to another arrive d after it was sent, including messages on
	// their way. A delay of 0 ends it.
	DelayLink(from, to int, d time.Duration)

	// SetPingLag sets how long after a standstill a leader sends its overdue pings. Until then it processes
	// requests although it does not know which clients its followers have heard of. The default is 20ms.
	SetPingLag(d time.Duration)

	// SetCommitDelay sets how long each server takes to write a transaction to disk. A server acknowledges a
	// transaction after it has written it. Several can be written at the same time. The default is 0.
	SetCommitDelay(d time.Duration)

	// SetSessionTimeoutsOf sets the bounds of session timeouts for later handshakes with one server. A session
	// that moves to or from that server can be granted another timeout than before.
	SetSessionTimeoutsOf(i int, shortest, longest time.Duration)

	// SetSequence sets the number that the next sequential node under path gets. It is an error if the node does
	// not exist, or the number is negative. In an ensemble, no write should be in flight.
	SetSequence(path string, next int32) error

	// ReapContainers has the leader delete the container nodes that have become empty, and the TTL nodes whose
	// time is over, and returns how many. A container that becomes empty because of that is deleted by the next
	// call. Without a leader it does nothing.
	ReapContainers() int

	// Throttle makes the servers answer matching requests with code -127, throttled, without asking the leader,
	// until Throttle is called with nil. These answers keep their place among the answers of the session. Pings
	// and requests to close a session are never throttled. The match must not call methods of the server. The
	// Request that it gets has no Conn.
	Throttle(m zktest.Match)
}

// ClockRate sets how fast the servers' clocks run, by the clock of this process. With 1.02 they are fast by two percent:
// a session that was granted 10s, as its client knows, lasts 9.8s. The default is 1.
func ClockRate(rate float64) zktest.Option { return switches.ClockRate(rate).(zktest.Option) }

// SetHome has server i run the ZooKeeper in a directory from its next start on, as in an upgrade. The directory is like
// that of the environment variable ZOOKEEPER_HOME.
func SetHome(e *zktest.Ensemble, i int, home string) error {
	return switches.Of(e).(interface {
		SetHome(i int, home string) error
	}).SetHome(i, home)
}
