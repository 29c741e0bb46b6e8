// Package clock is the lease clock: until when the ensemble cannot have expired a session (lease.go), what the frames
// of a connection prove of it (link.go), and when heartbeats are due (beat.go). It decides, and sends nothing.
package clock

import (
	"sync/atomic"
	"time"
)

// # The lease clock
//
// A session must know, without being told, until when the ensemble cannot have expired it. This is the whole
// derivation. Facts about the servers are from ZooKeeper 3.8 and 3.9: SessionTrackerImpl, ExpiryQueue,
// LearnerHandler, Leader, Learner, LearnerSessionTracker.
//
// # How a leader counts
//
// The leader counts the timeout of a session from the last time the session was touched, and rounds the end up to its
// next tick. It touches a session
//
//   - at once, for any request but an identity, if the client is connected to the leader;
//   - at once, for the handshake of any connection, which a follower passes on;
//   - for all other requests to a follower, only when it receives the follower's list of the sessions that the
//     follower has heard of since its last list: the answer to the leader's ping. A leader pings twice a tick.
//
// A sync or a write that a follower forwards touches nothing. If a follower is cut off just before it sends a list,
// up to half a tick of touches is lost.
//
// A new leader gives every session its whole timeout from its election on. A leader that has lost the other servers
// still answers pings, reads and syncs, for up to syncLimit ticks. A server that loses its leader closes its clients'
// connections. So one connection knows one leader, and what passes between leader and server is two ordered streams.
//
// # What an answer proves
//
// Write h for half a tick of a leader whose clock is slow, and g for the constant gap below. Take three things that
// happened on one connection, from the latest to the earliest:
//
//  1. A write that we sent at S, and that a quorum agreed to. The leader that took it was the leader at S or later.
//     It had not expired the session, or else it would have refused the write. Before it took the write, it had taken
//     every list that our server had sent before it forwarded the write. No later leader expires the session before
//     its own election plus the timeout, and that election came after the write.
//  2. A request through the leader (a sync, a write or the handshake) that we sent at S″, and whose answer we had at
//     S − g or before. The leader was running at some moment between the two. It had queued the last ping before that
//     moment at S″ − h or later. A server answers that ping before it passes on the leader's answer, which is behind
//     it. The exception is a leader that had just been standing still (garbage collection, a stopped machine), or
//     whose pinging thread is late: it queued the overdue ping within g. Either way, before our server forwarded the
//     write of S, it answered a ping that was queued at S″ − h or later, with a list that was made after S″ − h.
//  3. A frame that we sent at F, and whose answer we had at S″ − h or before. The server notes that it has heard of
//     the session before it answers. So the session was on that list, or on an earlier one.
//
// Hence, when the write of S is answered, the leader has touched the session at F or later:
//
//	S″      = when we sent the latest request through the leader whose answer we had at S − g
//	touched = when we sent the latest frame whose answer we had at S″ − h;
//	          or when we sent the handshake, if that is later
//	certain until  touched + timeout − margin
//
// S″ and touched depend only on what was answered before S. So they are computed when a request is sent.
//
// The timeout is the smallest that any connection of the session was granted: followers touch the session with that
// of the connection, and a new leader counts by the first.
//
// The rates of two clocks may differ by a fiftieth. If the leader's clock is fast, its timeout ends earlier by that:
// the margin covers it. If it is slow, its half tick takes longer, and h is a fiftieth longer than half a tick.
// Otherwise a list could lack the frame F.
//
// The margin is a tenth of the timeout unless the user sets it. It also covers threads that run late.
//
// Half a tick is half of what session.WithTickTime says, or what the manager has learned, or a quarter of the
// timeout: servers grant no less than two ticks unless they are configured to.
//
// docs/clock.md has this as a theorem, which a solver proves. docs/measured/clock.md has what would happen without
// each assumption.
//
// # A session that owns nothing
//
// No client waits for such a session to end, so it needs no proof: it counts as alive for timeout − margin after it
// sent its last answered request through a leader. Its first lock is a write, which proves touched as above.
//
// # What this assumes
//
//   - minSessionTimeout is not set below two ticks, unless the tick is told. Ticks, and the bounds of session
//     timeouts, do not change under running clients: a manager learns the tick once, and a greeting that grants less
//     can be lost.
//   - The leader's pinging thread does not stand still alone for longer than g, and it goes on within g of a
//     standstill of the whole leader, before the next standstill.
//   - On its way to our server, that overdue ping falls behind the answer sent just before it by no more than the
//     rest of g and our own round trip. In that time the server answers it.
//   - A frame that a server notes in the very instant in which it makes a list is on that list or the next one.
//     Only a session that has owned no node until now depends on this: any other has sent the preceding frame at most a
//     twentieth of a timeout earlier (beat.go), and the margin covers that.
//   - There are no observers behind observer masters: they would add another half tick.
//   - Time that this machine was suspended counts: see [Now].

// gap is g above: how soon after a standstill a leader has queued its overdue pings.
const gap = 100 * time.Millisecond

// slowHalf returns h above, for half a tick by a clock that is right.
func slowHalf(half time.Duration) time.Duration { return half + half/50 }

// Clock is the lease clock of a session. It is safe for concurrent use.
type Clock struct {
	start time.Time

	// Nanoseconds since start. They only move forward.
	proven atomic.Int64 // touched above
	heard  atomic.Int64 // when the latest answered request through a leader was sent

	lease atomic.Int64 // timeout − margin
}

// New returns a clock that has run out until SetLease is called.
func New(now time.Time) *Clock { return &Clock{start: now} }

// SetLease sets timeout − margin.
func (c *Clock) SetLease(d time.Duration) { c.lease.Store(int64(d)) }

// Heard notes that a request through a leader, sent at the given time, was answered.
func (c *Clock) Heard(sent time.Time) { c.advance(&c.heard, sent) }

// Prove notes that the leader has touched the session at the given time or later.
func (c *Clock) Prove(touched time.Time) { c.advance(&c.proven, touched) }

// Answered is what the answer to a request through the leader proves.
type Answered struct {
	Sent time.Time
	// If a quorum agreed, the leader has touched the session at Touched or later.
	Quorum  bool
	Touched time.Time
}

// Take notes what an answer proves.
func (c *Clock) Take(a Answered) {
	c.advance(&c.heard, a.Sent)
	if a.Quorum {
		c.advance(&c.proven, a.Touched)
	}
}

func (c *Clock) advance(to *atomic.Int64, t time.Time) {
	at := int64(t.Sub(c.start))
	for {
		old := to.Load()
		if at <= old || to.CompareAndSwap(old, at) {
			return
		}
	}
}

// Proven returns the latest time at which the leader has certainly touched the session.
func (c *Clock) Proven() time.Time { return c.start.Add(time.Duration(c.proven.Load())) }

// Latest returns the latest time that Heard or Prove has noted.
func (c *Clock) Latest() time.Time {
	return c.start.Add(time.Duration(max(c.proven.Load(), c.heard.Load())))
}

// Remaining returns for how long the session is certain: zero or less if it is not. owns: the session owns nodes, and
// only Prove counts.
func (c *Clock) Remaining(now time.Time, owns bool) time.Duration {
	last := c.proven.Load()
	if !owns {
		last = max(last, c.heard.Load())
	}
	return time.Duration(c.lease.Load()+last) - now.Sub(c.start)
}
