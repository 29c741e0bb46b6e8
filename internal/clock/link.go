package clock

import (
	"sort"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Link is what one connection means for the lease of its session: what it has shown, and when its heartbeats are due. It
// decides, and sends nothing.
type Link struct {
	timeout   time.Duration
	trail     trail
	beat      beat
	lastSent  time.Time
	slowUntil time.Time // until then answers count as slow
}

// Begin notes the handshake and its answer. It reports whether a write is due at once. half is half a tick, or more. owns
// says whether the session owns nodes.
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

// Due returns the heartbeats that are due now, and when to look again. half is half a tick, or more, and never more than it was
// before. proven is [Clock.Proven]. Began has to be called with the number of a Sync.
func (l *Link) Due(now time.Time, half time.Duration, owns bool, proven time.Time) (due []Duty, next time.Time) {
	l.trail.half = slowHalf(half)
	due = l.beat.due(now, facts{
		owns: owns, slow: now.Before(l.slowUntil), lastSent: l.lastSent,
		proven: proven, reach: l.trail.reach(now), half: l.trail.half,
	})
	return due, l.beat.next(now)
}

// Began notes the sync of a round.
func (l *Link) Began(xid int32) { l.beat.syncs = append(l.beat.syncs, xid) }

// Sending is a frame in flight: a request or a ping.
type Sending struct {
	Xid, Op int32
	At      time.Time
	proof   time.Time // touched in lease.go, if a quorum answers
}

// evidence is what an answer shows about the ensemble: see lease.go.
type evidence int

const (
	evidenceNone   evidence = iota // the server may have answered alone
	evidenceLeader                 // the leader has answered
	evidenceQuorum                 // a quorum has agreed to the answer
)

// shows returns what an answer to a request shows. The leader answers a sync alone, and does so
// for seconds after it was cut off from the other servers. A quorum agrees to each write, also to
// one that is refused because of the nodes that exist. Other refusals a follower can give alone:
// for lack of rights or for a bad ACL (enableEagerACLCheck), because it is overloaded, or because
// it is read-only. A multi that was refused because of one of its operations has CodeOK in its header, and
// each operation's code in its body. Only the leader tries the operations, and a quorum agrees to the refusal.
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

// trail is what one connection has shown so far. It is enough to say what a write that is sent
// now will prove. What another connection has shown does not count, because that connection may
// know another leader.
type trail struct {
	half    time.Duration // h in lease.go
	hello   time.Time     // when the handshake was sent
	frames  history       // all frames
	through history       // requests through the leader, including the handshake
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

// sends returns a frame that is sent at the given time, with what a quorum's answer to it will prove.
func (t *trail) sends(xid, op int32, at time.Time) Sending {
	s := Sending{Xid: xid, Op: op, At: at}
	if shows(op, codec.CodeOK) == evidenceQuorum {
		s.proof = t.proof(at)
	}
	return s
}

// takes notes an answer that came now, and returns what it shows.
func (t *trail) takes(s Sending, code int32, now time.Time) evidence {
	e := shows(s.Op, code)
	t.answered(s.At, now, e != evidenceNone)
	return e
}

// answered notes an answer that came now. byLeader says whether the request went through the leader.
//
// It forgets what no later proof can need. S″ of a write is the later, the later the write is sent. So S″
// of all writes to come is at least S″ of a write that would be sent now, and of the frames whose answers
// came h before that only the latest can count. A session that is not lost has had an answer through the
// leader within a timeout, whether it writes or not. So what is kept is no older than a timeout, h and the
// gap together.
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

// proof returns touched, as defined in lease.go, for a write that is sent at the given time.
func (t *trail) proof(write time.Time) time.Time {
	request, ok := t.through.sent(write.Add(-gap)) // S″
	if !ok {
		return t.hello
	}
	return t.reach(request)
}

// reach returns touched, as defined in lease.go, if S″ is the given time.
func (t *trail) reach(at time.Time) time.Time {
	touched, ok := t.frames.sent(at.Add(-t.half))
	if !ok || touched.Before(t.hello) {
		return t.hello
	}
	return touched
}

// history has the times when things were sent and when their answers came. Both are in order.
type history struct {
	all []exchange
	res time.Duration // the least time between two entries
}

type exchange struct{ sent, answered time.Time }

// add notes an answer, and reports whether it did. It leaves out what was sent before the last entry, or hardly
// later. That bounds the entries of a time, and can only make a proof weaker.
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

// after returns how many entries, from the beginning, were answered by the given time.
func (h *history) after(by time.Time) int {
	return sort.Search(len(h.all), func(i int) bool { return h.all[i].answered.After(by) })
}

// historyRoom is for how many entries a history keeps room, even if it has less.
const historyRoom = 16

// prune removes the entries that no later call of sent can return: all before the latest that was
// answered by the given time. Once most of the room is not needed any more, it lets that go.
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
