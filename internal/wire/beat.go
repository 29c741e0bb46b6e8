package wire

import (
	"slices"
	"time"
)

// Heartbeats. A session that owns nodes needs, often and one soon after the other: frames
// that are answered (pings, which the server that we are connected to answers by itself), a
// request through the leader (a sync, which costs no disk), and a write that a quorum agrees
// to. lease.go says why. A session that owns nothing needs one request through the leader now
// and then. Any request of the user counts as well.
//
// docs/performance.md has the table from which the intervals were chosen.
const (
	// tickPerTimeout is how many times in a timeout the schedule is looked at, and a ping
	// sent where nothing else was.
	tickPerTimeout = 20
	// roundPerTimeout is how many rounds, each a sync and then a write, a session that owns
	// nodes begins in a timeout. A round does not wait for the one before: where answers
	// take long, several are under way.
	roundPerTimeout = 5
	// idlePerTimeout is how many syncs a session sends that owns nothing: as many as
	// zk.Conn sends pings.
	idlePerTimeout = 3
	// slowPerTimeout: when an answer has taken longer than this part of a timeout, a session
	// that owns nothing sends, for a timeout, as many pings and syncs as one that owns nodes.
	// Or else its first lock would begin with a proof that is too old.
	slowPerTimeout = 50
)

// beat is the schedule of one connection. It decides and sends nothing.
type beat struct {
	timeout time.Duration
	round   time.Time   // when the last round began
	reach   time.Time   // what the last round could prove at most
	syncs   []int32     // of rounds, those that are in flight
	agree   []time.Time // when the writes of rounds are due
	busy    bool        // it sees to pings: zk.Conn's are not needed
}

// aside keeps the schedule off the instants at which zk.Conn pings, so that which of the two is
// first does not matter; that can be told in virtual time only.
const aside = time.Millisecond

// duty is a heartbeat that is due.
type duty int

const (
	dutyPing duty = iota
	dutySync
	dutyAgree
)

// facts are what the schedule goes by.
type facts struct {
	owns     bool
	slow     bool // answers have taken long lately
	lastSent time.Time
	proven   time.Time
	reach    time.Time     // what a round can prove at most that begins now
	half     time.Duration // h in lease.go
}

// begin is called with the greeting, and reports whether a write is due at once: on a new
// connection of a session that owns nodes, it proves that the leader took the handshake.
func (b *beat) begin(now time.Time, timeout time.Duration, owns bool) bool {
	b.timeout = timeout
	b.round, b.reach = now.Add(aside), now
	if !owns {
		b.round = b.round.Add(-timeout / idlePerTimeout / 2) // halfway between zk.Conn's pings
	}
	return owns
}

// due returns what is to be sent now.
func (b *beat) due(now time.Time, f facts) []duty {
	var out []duty
	writes := len(b.agree)
	b.agree = slices.DeleteFunc(b.agree, func(at time.Time) bool { return !at.After(now) })
	if f.owns && writes > len(b.agree) {
		out = append(out, dutyAgree)
	}
	if b.roundDue(now, f) {
		b.round, b.reach = now, f.reach
		out = append(out, dutySync)
	}
	b.busy = f.owns || f.slow
	if b.busy && len(out) == 0 && now.Sub(f.lastSent) >= b.timeout/tickPerTimeout {
		out = append(out, dutyPing)
	}
	return out
}

// roundDue reports whether a round is due: not while the requests of the user prove as much.
// One is due early when answers that a slow request has held up came together, for the round
// before it was sent too soon to count them.
func (b *beat) roundDue(now time.Time, f facts) bool {
	since, every := now.Sub(b.round), b.timeout/roundPerTimeout
	caughtUp := f.reach.Sub(b.reach) >= since+every/2
	switch {
	case f.owns:
		return (since >= every || caughtUp) && now.Sub(f.proven) >= f.half+gap+every
	case f.slow:
		return since >= every
	}
	return since >= b.timeout/idlePerTimeout
}

// began notes the sync of a round.
func (b *beat) began(xid int32) { b.syncs = append(b.syncs, xid) }

// answered takes the answer to a request, which says whether the leader gave it, and reports
// whether that was the sync of a round: its write is due after the gap.
func (b *beat) answered(xid int32, byLeader bool, now time.Time) bool {
	i := slices.Index(b.syncs, xid)
	if i < 0 {
		return false
	}
	b.syncs = slices.Delete(b.syncs, i, i+1)
	if byLeader {
		b.agree = append(b.agree, now.Add(gap))
	}
	return byLeader
}

// next returns when to look again.
func (b *beat) next(now time.Time) time.Time {
	at := now.Add(b.timeout / tickPerTimeout)
	if r := b.round.Add(b.timeout / roundPerTimeout); r.After(now) && r.Before(at) {
		at = r // so that rounds keep their distance, whatever else is looked for
	}
	for _, a := range b.agree {
		if a.Before(at) {
			at = a
		}
	}
	return at
}

// beats sends heartbeats until the connection is closed.
func (w *Conn) beats() {
	timer := time.NewTimer(aside)
	defer timer.Stop()
	for {
		select {
		case <-w.closed:
			return
		case <-timer.C:
		case <-w.answered:
		}
		owns := w.cfg.Events.Owns()
		var wait time.Duration
		w.sendAll(func() [][]byte {
			now := Now()
			out := w.duties(now, owns)
			wait = w.beat.next(now).Sub(now)
			return out
		})
		timer.Reset(wait)
	}
}

// duties returns the frames that are due. It is called with w.mu held.
func (w *Conn) duties(now time.Time, owns bool) (out [][]byte) {
	w.trail.half = w.cfg.Half(w.timeout)
	for _, d := range w.beat.due(now, facts{
		owns: owns, slow: now.Before(w.slowUntil), lastSent: w.lastSent,
		proven: w.cfg.Clock.Proven(), reach: w.trail.reach(now), half: w.trail.half,
	}) {
		switch d {
		case dutyPing:
			out = append(out, pingFrame())
		case dutySync:
			xid := w.xidLocked()
			w.beat.began(xid)
			out = append(out, syncFrame(xid))
		case dutyAgree:
			out = append(out, agreeFrame(w.xidLocked()))
		}
	}
	return out
}
