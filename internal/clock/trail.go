package clock

import (
	"sort"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Sending is a frame in flight: a request or a ping.
type Sending struct {
	Xid, Op int32
	At      time.Time
	proof   time.Time // touched in lease.go, if a quorum answers
}

// trail is what one connection has shown so far. It is enough to say what a write that is sent
// now will prove. What another connection has shown does not count, because that connection may
// know another leader.
type trail struct {
	half    time.Duration // h above
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
	if at, ok := t.request(now); ok {
		t.frames.prune(at.Add(-t.half))
	}
}

// request returns S″, as defined above, of a write sent at the given time.
func (t *trail) request(write time.Time) (time.Time, bool) { return t.through.sent(write.Add(-gap)) }

// proof returns touched, as defined above, for a write sent now.
func (t *trail) proof(now time.Time) time.Time {
	at, ok := t.request(now)
	if !ok {
		return t.hello
	}
	return t.reach(at)
}

// reach returns touched, as defined above, if S″ is the given time.
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
