package session

import (
	"sync/atomic"
	"time"
)

// clock is the lease clock: until when the ensemble cannot have expired the
// session. It only ever moves forward.
//
// A session's expiry is counted, on the leader, from a moment after the client
// sent something. So
//
//	send time of the last request answered + timeout − margin
//
// is a lower bound, if the answer shows that the leader was in touch, and leader.
// zk.Conn learns of an expiry only from a server, when it can reach one again; by
// then others have been let in for long. What an answer shows depends on who gives
// it:
//
//   - Pings and reads a follower answers by itself, for seconds after it was cut off
//     from its leader, which meanwhile expires the session.
//   - A sync, and the handshake of a reconnect, the leader answers by itself, for
//     seconds after it was cut off from the others, who meanwhile elect another.
//   - A write a quorum has agreed to, also if it was refused.
//
// While the session owns nodes, which others wait for to go, only the last counts;
// while it owns none the second will do. Heartbeats see to both (heartbeat.go).
type clock struct {
	start     time.Time    // monotonic base of confirmed
	confirmed atomic.Int64 // send time of the last request that counts, in nanoseconds since start
	lease     atomic.Int64 // timeout − margin, in nanoseconds
}

func newClock(now time.Time) *clock { return &clock{start: now} }

func (c *clock) setLease(d time.Duration) { c.lease.Store(int64(d)) }

// confirm notes that a request sent at the given time was answered so that it counts.
func (c *clock) confirm(sent time.Time) {
	at := int64(sent.Sub(c.start))
	for {
		old := c.confirmed.Load()
		if at <= old || c.confirmed.CompareAndSwap(old, at) {
			return
		}
	}
}

// last returns the send time of the last confirmed request.
func (c *clock) last() time.Time {
	return c.start.Add(time.Duration(c.confirmed.Load()))
}

// remaining returns for how long, from now on, the session is certain; zero or
// less if it is not.
func (c *clock) remaining(now time.Time) time.Duration {
	since := now.Sub(c.start) - time.Duration(c.confirmed.Load())
	return time.Duration(c.lease.Load()) - since
}

// margin returns what to subtract from a negotiated timeout.
func margin(configured, timeout time.Duration) time.Duration {
	if configured == 0 {
		return timeout / 10
	}
	return min(configured, timeout/2)
}
