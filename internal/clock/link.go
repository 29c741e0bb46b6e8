package clock

import "time"

// Link is what one connection means for the lease of its session: what it has shown, and when its heartbeats are due. It
// decides, and sends nothing.
type Link struct {
	timeout   time.Duration
	trail     trail
	beat      beat
	lastSent  time.Time
	slowUntil time.Time // until then answers count as slow
}

// Begin notes the handshake and its answer. It reports whether a write is due at once. owns says whether the session
// owns nodes.
func (l *Link) Begin(hello, greeted time.Time, timeout time.Duration, owns bool) bool {
	l.timeout, l.lastSent = timeout, hello
	l.trail.begin(hello, greeted, timeout)
	return l.beat.begin(greeted, timeout, owns)
}

// SetHalf sets half a tick, or more.
func (l *Link) SetHalf(half time.Duration) { l.trail.half = slowHalf(half) }

// Sends returns a frame that is sent at the given time, with what a quorum's answer to it will prove.
func (l *Link) Sends(xid, op int32, at time.Time) Sending {
	l.lastSent = at
	return l.trail.sends(xid, op, at)
}

// Takes notes an answer that came now, and returns what it proves. byLeader says whether it proves anything: whether the
// leader has answered. agrees says whether a write is due after the gap, so that Due has to be called again.
func (l *Link) Takes(s Sending, code int32, now time.Time) (a Answered, byLeader, agrees bool) {
	if now.Sub(s.At) > l.timeout/slowPerTimeout {
		l.slowUntil = now.Add(l.timeout)
	}
	e := l.trail.takes(s, code, now)
	byLeader = e != evidenceNone
	a = Answered{Sent: s.At, Quorum: e == evidenceQuorum, Touched: s.proof}
	return a, byLeader, l.beat.answered(s.Xid, byLeader, now)
}

// Due returns the heartbeats that are due now, and when to look again. proven is [Clock.Proven]. Began has to be called
// with the number of a Sync.
func (l *Link) Due(now time.Time, owns bool, proven time.Time) (due []Duty, next time.Time) {
	due = l.beat.due(now, facts{
		owns: owns, slow: now.Before(l.slowUntil), lastSent: l.lastSent,
		proven: proven, reach: l.trail.reach(now), half: l.trail.half,
	})
	return due, l.beat.next(now)
}

// Began notes the sync of a round.
func (l *Link) Began(xid int32) { l.beat.syncs = append(l.beat.syncs, xid) }
