package wire

import (
	"sort"
	"sync/atomic"
	"time"
)

// # The lease clock
//
// A session must know, without being told, until when the ensemble cannot have expired it.
// zk.Conn learns of an expiry only from a server, when it reaches one again; by then other
// clients have been let in for long. This is the whole derivation. Every other place refers
// to it. Facts about the servers are from ZooKeeper 3.8 and 3.9: SessionTrackerImpl,
// ExpiryQueue, LearnerHandler, Leader, Learner, LearnerSessionTracker.
//
// # How a leader counts
//
// The leader counts the timeout of a session from the last time it was touched, and rounds
// the end up to its next tick. It touches a session
//
//   - at once, for any request but an identity, if the client is connected to the leader;
//   - at once, for the handshake of any connection, which a follower passes on;
//   - for all other requests to a follower, only when it receives the list of the sessions
//     that the follower has heard of since its last list. A follower sends the list as its
//     answer to the leader's ping. A leader pings twice a tick.
//
// A request that a follower forwards touches nothing, be it a sync or a write. So a follower
// that is cut off just before it sends a list takes up to half a tick of touches with it,
// although writes were answered meanwhile.
//
// A new leader gives every session its whole timeout from its election on. A leader that
// lost the others answers pings, reads and syncs by itself for up to syncLimit ticks. A
// server that loses its leader closes its clients' connections. So one connection knows one
// leader, and what passes between that leader and the server is two ordered streams.
//
// # What an answer proves
//
// Write h for half a tick and g for the gap below. Take three things that happened on one
// connection, from the latest to the earliest:
//
//  1. A write that we sent at S, and a quorum agreed to. At S or later its leader was the
//     leader. Before it took the write it had taken every list that our server had sent
//     before it forwarded the write. No later leader expires the session before its own
//     election plus the timeout, and that election came after the write.
//  2. A request through the leader (a sync, a write or the handshake) that we sent at S″
//     and whose answer was here at S − g or before. The leader was at work at some moment
//     between the two. The ping before that moment was queued at most h earlier, at S″ − h
//     or later. If it was not, because the leader had just stood still (collection of
//     garbage, a stopped machine), the overdue ping was queued within g. Either way our
//     server answered, before it forwarded the write of S, a ping that was queued at S″ − h
//     or later. The list in that answer was made after S″ − h.
//  3. A frame that we sent at F, and whose answer was here at S″ − h or before. The server
//     notes that it has heard of the session before it answers. So the session was on that
//     list, or on one before.
//
// Hence, when the write of S is answered, the leader has touched the session at F or later:
//
//	S″      = when we sent the latest request through the leader whose answer was here at S − g
//	touched = when we sent the latest frame whose answer was here at S″ − h;
//	          or when we sent the handshake, if that is later
//	certain until  touched + timeout − margin
//
// S″ and touched depend only on what was answered before S. So they are computed when a
// request is sent, kept with it while it is in flight, and count when its answer says that a
// quorum agreed.
//
// The timeout is the smallest that any connection of the session was granted: followers
// touch with that of the connection, and a new leader counts by the first.
//
// The margin, a tenth of the timeout unless the user sets it, is for threads that run late
// (this client's and the server's, which can also lose one frame from a list at the very
// moment when it makes the next) and for clocks, which may differ by a hundredth.
//
// h is half of what session.WithTickTime says, or what the manager has learned, or a quarter of
// the timeout: servers grant no less than two ticks unless they are told to.
//
// # A session that owns nothing
//
// Nobody waits for such a session to end, so it needs no proof. It is taken for alive for
// timeout − margin after it sent its last request through a leader. Its first lock is a
// write, which proves by 1 to 3; for that to reach far enough there have to be syncs
// meanwhile (beat.go).
//
// # What this assumes
//
//   - minSessionTimeout is not set below two ticks, where the tick is not told. Ticks, and the
//     bounds of session timeouts, do not change under running clients: the tick is learned once
//     a manager, and a greeting that grants less than the one before can be lost.
//   - The leader's pinging thread does not stand still alone, and goes on within g of a
//     standstill of the whole leader. (With TLS between servers it can hang on the socket of
//     a dead follower, unless leader.closeSocketAsync is set.)
//   - That overdue ping, on its way to our server, loses no more time to the answer sent
//     just before it than the rest of g and our own round trip. To do without this one would
//     need one more request through the leader between the two above. That costs a round
//     trip more of the lease, which slow networks do not have.
//   - No observers behind observer masters: they would add another half tick.
//   - Time that this machine was suspended counts: see [Now].

// gap is g above: how soon after a standstill a leader has queued its overdue pings.
const gap = 100 * time.Millisecond

// Clock is the lease clock of a session. It is safe for concurrent use.
type Clock struct {
	start time.Time // base of what follows

	// In nanoseconds since start. They only ever move forward.
	proven atomic.Int64 // touched above
	heard  atomic.Int64 // when the latest answered request through a leader was sent

	lease atomic.Int64 // timeout − margin, in nanoseconds
}

// NewClock returns a clock that has run out until it is told of a lease.
func NewClock(now time.Time) *Clock { return &Clock{start: now} }

// SetLease sets timeout − margin.
func (c *Clock) SetLease(d time.Duration) { c.lease.Store(int64(d)) }

// Heard notes that a request through a leader, sent at the given time, was answered.
func (c *Clock) Heard(sent time.Time) { c.advance(&c.heard, sent) }

// Prove notes that the leader has touched the session at the given time or later.
func (c *Clock) Prove(touched time.Time) { c.advance(&c.proven, touched) }

func (c *Clock) advance(to *atomic.Int64, t time.Time) {
	at := int64(t.Sub(c.start))
	for {
		old := to.Load()
		if at <= old || to.CompareAndSwap(old, at) {
			return
		}
	}
}

// Proven returns when the leader has touched the session at the earliest, as far as proven.
func (c *Clock) Proven() time.Time { return c.start.Add(time.Duration(c.proven.Load())) }

// Latest returns when the latest request was sent whose answer counted for anything.
func (c *Clock) Latest() time.Time {
	return c.start.Add(time.Duration(max(c.proven.Load(), c.heard.Load())))
}

// Remaining returns for how long, from now on, the session is certain; zero or less if it is
// not. What a session that owns nodes needs is stricter.
func (c *Clock) Remaining(now time.Time, owns bool) time.Duration {
	last := c.proven.Load()
	if !owns {
		last = max(last, c.heard.Load())
	}
	return time.Duration(c.lease.Load()+last) - now.Sub(c.start)
}

// Margin returns what to subtract from a granted timeout; configured is 0 for the default.
func Margin(configured, timeout time.Duration) time.Duration {
	if configured == 0 {
		return timeout / 10
	}
	return min(configured, timeout/2)
}

// trail is what one connection has shown so far: enough to say what a write proves that is
// sent now. What another connection has shown does not count: it may know another leader.
type trail struct {
	half    time.Duration // h above
	hello   time.Time     // when the handshake was sent
	frames  history       // of all frames
	through history       // of requests through the leader, the handshake included
}

// begin notes the handshake and its answer.
func (t *trail) begin(hello, greeted time.Time, timeout time.Duration) {
	res := timeout / 500
	t.hello = hello
	t.frames = history{res: res}
	t.through = history{res: res}
	t.frames.add(hello, greeted)
	t.through.add(hello, greeted)
}

// proof returns touched above, for a write sent now.
func (t *trail) proof(now time.Time) time.Time {
	t.through.prune(now.Add(-gap))
	at, ok := t.through.sent(now.Add(-gap))
	if !ok {
		return t.hello
	}
	t.frames.prune(at.Add(-t.half))
	return t.reach(at)
}

// reach returns touched above, where the given time is S″.
func (t *trail) reach(at time.Time) time.Time {
	touched, ok := t.frames.sent(at.Add(-t.half))
	if !ok || touched.Before(t.hello) {
		return t.hello
	}
	return touched
}

// history holds when things were sent and when their answers came, both in order.
type history struct {
	all []exchange
	res time.Duration // how far apart two of them have to be
}

type exchange struct{ sent, answered time.Time }

// add notes an answer. One to what was sent hardly later than the one before, or earlier, is
// left out: that can only make a proof weaker, and bounds the memory.
func (h *history) add(sent, answered time.Time) {
	if n := len(h.all); n > 0 && sent.Before(h.all[n-1].sent.Add(h.res)) {
		return
	}
	h.all = append(h.all, exchange{sent, answered})
}

// sent returns when the latest was sent whose answer had come by the given time.
func (h *history) sent(by time.Time) (time.Time, bool) {
	i := h.after(by)
	if i == 0 {
		return time.Time{}, false
	}
	return h.all[i-1].sent, true
}

// after returns how many were answered by the given time: those at the beginning.
func (h *history) after(by time.Time) int {
	return sort.Search(len(h.all), func(i int) bool { return h.all[i].answered.After(by) })
}

// prune forgets what no later question can be about: all before the latest that was
// answered by the given time.
func (h *history) prune(by time.Time) {
	keep := h.after(by) - 1
	if keep > len(h.all)/2 {
		h.all = append(h.all[:0], h.all[keep:]...)
	}
}
