package clock

import (
	"sort"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Link is what one connection means for the lease of its session.
type Link struct {
	timeout   time.Duration
	trail     trail
	beat      beat
	lastSent  time.Time
	slowUntil time.Time // answers count as slow until then
}

// Begin notes the handshake and its answer, and reports whether a write is due at once. half is half a tick, or more.
// owns: the session owns nodes.
func (l *Link) Begin(hello, greeted time.Time, timeout, half time.Duration, owns bool) bool {
	l.timeout, l.lastSent, l.trail.half = timeout, hello, slowHalf(half)
	l.trail.begin(hello, greeted, timeout)
	return l.beat.begin(greeted, timeout, owns)
}

// Sends returns a frame that is sent at the given time, with what a quorum's answer to it will prove.
func (l *Link) Sends(xid, op int32, at time.Time) Sending {
	l.lastSent = at
	return l.trail.sends(xid, op, at)
}

// Takes notes an answer that came now, and returns what it proves, if byLeader. agrees: a write is due soon, so call
// Due again.
func (l *Link) Takes(s Sending, code int32, now time.Time) (a Answered, byLeader, agrees bool) {
	if now.Sub(s.At) > l.timeout/slowPerTimeout {
		l.slowUntil = now.Add(l.timeout)
	}
	e := l.trail.takes(s, code, now)
	byLeader = e != evidenceNone
	a = Answered{Sent: s.At, Quorum: e == evidenceQuorum, Touched: s.proof}
	return a, byLeader, l.beat.answered(s.Xid, byLeader, now)
}

// Due returns the heartbeats that are due, and when to look again. half must never grow. proven is [Clock.Proven].
// Call Began for each Sync.
func (l *Link) Due(now time.Time, half time.Duration, owns bool, proven time.Time) (due []Duty, next time.Time) {
	l.trail.half = slowHalf(half)
	due = l.beat.due(now, facts{
		owns: owns, slow: now.Before(l.slowUntil), lastSent: l.lastSent,
		proven: proven, reach: l.trail.reach(now), half: l.trail.half,
	})
	return due, l.beat.next(now)
}

// Began notes the number of the sync of a round.
func (l *Link) Began(xid int32) { l.beat.syncs = append(l.beat.syncs, xid) }

// Sending is a frame in flight.
type Sending struct {
	Xid, Op int32
	At      time.Time
	proof   time.Time // touched in lease.go, if a quorum answers
}

type evidence int

const (
	evidenceNone evidence = iota // the server may have answered alone
	evidenceLeader
	evidenceQuorum
)

// shows returns what an answer shows. The leader answers a sync alone (lease.go). A quorum agrees to each write, and
// to each refusal because of the nodes that exist. Other refusals a follower can give alone: for lack of rights, for a
// bad ACL (enableEagerACLCheck), or because it is overloaded or read-only. A multi has CodeOK in its header even if it
// was refused because of an operation: only the leader tries those, and a quorum agrees to the refusal.
func shows(op, code int32) evidence {
	switch op {
	case codec.OpSync:
		if code == codec.CodeOK {
			return evidenceLeader
		}
	case codec.OpCreate, codec.OpCreate2, codec.OpCreateContainer, codec.OpCreateTTL, codec.OpDelete, codec.OpSetData, codec.OpSetACL, codec.OpMulti:
		switch code {
		case codec.CodeOK, codec.CodeNoNode, codec.CodeNodeExists, codec.CodeBadVersion, codec.CodeNotEmpty:
			return evidenceQuorum
		}
	}
	return evidenceNone
}

// trail is what one connection has shown so far. Another one may know another leader, and does not count.
type trail struct {
	half    time.Duration // h in lease.go
	hello   time.Time
	frames  history
	through history // requests through the leader, and the handshake
}

func (t *trail) begin(hello, greeted time.Time, timeout time.Duration) {
	res := timeout / 500
	t.hello = hello
	t.frames = history{res: res}
	t.through = history{res: res}
	t.frames.add(hello, greeted)
	t.through.add(hello, greeted)
}

func (t *trail) sends(xid, op int32, at time.Time) Sending {
	s := Sending{Xid: xid, Op: op, At: at}
	if shows(op, codec.CodeOK) == evidenceQuorum {
		s.proof = t.proof(at)
	}
	return s
}

func (t *trail) takes(s Sending, code int32, now time.Time) evidence {
	e := shows(s.Op, code)
	t.answered(s.At, now, e != evidenceNone)
	return e
}

// answered notes an answer that came now, and forgets what no later proof can need. S″ of writes to come is at least
// S″ of a write that would be sent now, and of the frames whose answers came h before that only the latest can count.
func (t *trail) answered(sent, now time.Time, byLeader bool) {
	added := t.frames.add(sent, now)
	if byLeader && t.through.add(sent, now) {
		added = true
	}
	if !added {
		return
	}
	t.through.prune(now.Add(-gap))
	if at, ok := t.through.sent(now.Add(-gap)); ok {
		t.frames.prune(at.Add(-t.half))
	}
}

// proof returns touched of lease.go for a write that is sent at the given time.
func (t *trail) proof(write time.Time) time.Time {
	request, ok := t.through.sent(write.Add(-gap)) // S″
	if !ok {
		return t.hello
	}
	return t.reach(request)
}

// reach returns touched of lease.go if S″ is the given time.
func (t *trail) reach(at time.Time) time.Time {
	touched, ok := t.frames.sent(at.Add(-t.half))
	if !ok || touched.Before(t.hello) {
		return t.hello
	}
	return touched
}

type history struct {
	all []exchange
	res time.Duration
}

type exchange struct{ sent, answered time.Time }

// add notes an answer, unless it was sent before the last entry or hardly later: that can only make a proof weaker.
func (h *history) add(sent, answered time.Time) bool {
	if n := len(h.all); n > 0 && sent.Before(h.all[n-1].sent.Add(h.res)) {
		return false
	}
	h.all = append(h.all, exchange{sent, answered})
	return true
}

// sent returns when the latest frame was sent whose answer had come by the given time.
func (h *history) sent(by time.Time) (time.Time, bool) {
	i := h.after(by)
	if i == 0 {
		return time.Time{}, false
	}
	return h.all[i-1].sent, true
}

func (h *history) after(by time.Time) int {
	return sort.Search(len(h.all), func(i int) bool { return h.all[i].answered.After(by) })
}

const historyRoom = 16

// prune removes the entries that no later call of sent can return: all before the latest that was answered by the
// given time.
func (h *history) prune(by time.Time) {
	keep := h.after(by) - 1
	if keep <= len(h.all)/2 {
		return // so that entries are seldom moved
	}
	rest := h.all[keep:]
	if into := 2 * len(rest); cap(h.all) > max(2*into, historyRoom) {
		h.all = append(make([]exchange, 0, max(into, historyRoom)), rest...)
		return
	}
	h.all = append(h.all[:0], rest...)
}
