package clock

import (
	"slices"
	"time"
)

// Heartbeats. A session that owns nodes needs three things, often and one soon after the other (lease.go says why):
// frames that are answered (pings), a request through the leader (a sync, which costs no disk write), and a write
// that a quorum agrees to.
//
// A session that owns nothing needs a sync now and then, and a ping in the middle between two of these: they prove
// something together only if more than half a tick lies between ping and sync.
//
// The intervals are from the table in docs/measured/outages.md.
const (
	// tickPerTimeout is how often the schedule is checked. A ping is due after as long without a frame.
	tickPerTimeout = 20
	// roundPerTimeout is how many rounds, of a sync and then a write, a session that owns nodes begins in a timeout,
	// without waiting for the one before.
	roundPerTimeout = 5
	// idlePerTimeout is how many syncs and pings a session that owns nothing sends in a timeout.
	idlePerTimeout = 3
	// slowPerTimeout: after an answer that takes longer than this part of a timeout, a session that owns nothing
	// sends as many frames as one that owns nodes, for a timeout: the proof for its first lock must not be too old.
	slowPerTimeout = 50
)

type beat struct {
	timeout time.Duration
	round   time.Time
	reach   time.Time   // the most that the last round could prove
	syncs   []int32     // of rounds in flight
	agree   []time.Time // when the writes of rounds are due
	pinged  bool        // since the last round, in the middle of the time to the next or later
}

// Aside keeps the schedule apart from what others do at round times: only virtual time can tell which comes first.
const Aside = time.Millisecond

type Duty int

const (
	Ping Duty = iota
	Sync
	Agree
)

type facts struct {
	owns     bool
	slow     bool // within the last timeout
	lastSent time.Time
	proven   time.Time
	reach    time.Time     // the most that a round can prove now
	half     time.Duration // h in lease.go
}

// Needed returns how long a lease (timeout − margin) has to be, so that heartbeats keep a session that owns nodes
// alive on healthy servers. half is half a tick.
//
// Holding: just before the write of a round is answered, the clock counts from a frame that is up to h and two pings
// older than the sync of the round before: a ping can be late by one look at the schedule. The next sync goes a round
// later, or a look after that, and its write a gap later.
//
// Idle: the first node is created just before the next sync, or within the gap after it. So the latest sync that
// counts is a third of the timeout old, and its ping half of that older. The next sync goes a look later.
//
// The rest is for answers: slower ones count as slow.
func Needed(timeout, half time.Duration) time.Duration {
	round, look := timeout/roundPerTimeout, timeout/tickPerTimeout
	holding := slowHalf(half) + gap + round + max(2*look, gap+look)
	idle := timeout*3/(2*idlePerTimeout) + gap + look
	return max(holding, idle) + 2*timeout/slowPerTimeout
}

// Margin returns what to subtract from a granted timeout. configured is 0 for the default. What the heartbeats need
// makes it shorter, but not shorter than the default. ok is false if they need more.
func Margin(configured, timeout, half time.Duration) (margin time.Duration, ok bool) {
	least := standardMargin(timeout)
	if configured == 0 {
		configured = least
	}
	room := timeout - Needed(timeout, half)
	return min(configured, max(room, least)), room >= min(configured, least)
}

func standardMargin(timeout time.Duration) time.Duration {
	return timeout / 10
}

// begin is called with the greeting, and reports whether a write is due at once, to prove that the leader took the
// handshake. If the session owns nothing, its first sync comes early, since the greeting may have come late.
func (b *beat) begin(now time.Time, timeout time.Duration, owns bool) bool {
	b.timeout = timeout
	b.round, b.reach = now.Add(Aside), now
	if !owns {
		b.round, b.pinged = b.round.Add(-b.idleEvery()/2), true
	}
	return owns
}

// idleEvery returns how long after the last round an idle session begins the next one. Half way it pings. The sync
// comes early if the last round could prove less than a later one, as after a short time with nodes.
func (b *beat) idleEvery() time.Duration {
	longest := b.timeout / idlePerTimeout
	provesLess := b.reach.Add(longest + longest/2).Sub(b.round)
	return min(max(provesLess, b.timeout/roundPerTimeout), longest)
}

func (b *beat) due(now time.Time, f facts) []Duty {
	var out []Duty
	writes := len(b.agree)
	b.agree = slices.DeleteFunc(b.agree, func(at time.Time) bool { return !at.After(now) })
	if f.owns && writes > len(b.agree) {
		out = append(out, Agree)
	}
	if b.roundDue(now, f) {
		b.round, b.reach, b.pinged = now, f.reach, false
		out = append(out, Sync)
	}
	if len(out) == 0 && b.pingDue(now, f) {
		b.pinged = now.Sub(b.round) >= b.idleEvery()/2
		out = append(out, Ping)
	}
	return out
}

func (b *beat) pingDue(now time.Time, f facts) bool {
	if f.owns || f.slow {
		return now.Sub(f.lastSent) >= b.timeout/tickPerTimeout
	}
	return !b.pinged && now.Sub(b.round) >= b.idleEvery()/2
}

// roundDue reports whether a round is due: not while the user's requests prove as much, and early if several answers
// have come together, held up by a slow request, because the last round was sent too soon to count them.
func (b *beat) roundDue(now time.Time, f facts) bool {
	since, every := now.Sub(b.round), b.timeout/roundPerTimeout
	caughtUp := f.reach.Sub(b.reach) >= since+every/2
	switch {
	case f.owns:
		return (since >= every || caughtUp) && now.Sub(f.proven) >= f.half+gap+every
	case f.slow:
		return since >= every
	}
	return since >= b.idleEvery()
}

// answered takes the answer to a request. After the leader's to the sync of a round, the write is due after the gap,
// and answered returns true.
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

func (b *beat) next(now time.Time) time.Time {
	at := now.Add(b.timeout / tickPerTimeout)
	for _, every := range []time.Duration{
		b.timeout / roundPerTimeout, b.idleEvery(), b.idleEvery() / 2,
	} {
		if r := b.round.Add(every); r.After(now) && r.Before(at) {
			at = r // so that rounds and pings keep their intervals
		}
	}
	for _, a := range b.agree {
		if a.Before(at) {
			at = a
		}
	}
	return at
}
