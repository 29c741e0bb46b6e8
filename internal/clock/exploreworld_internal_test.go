package clock

import (
	"fmt"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// The world of the explorer: two leaders, a follower and a client, as in the derivation in lease.go. Time
// is in whole units of g. Each thing that happens is a move, and several can happen at one time, in any
// order. The world keeps the assumptions of the derivation, and does everything else that it can: see
// moves.

// bounds are how much may happen in a world.
type bounds struct {
	half       int8 // half a tick
	until      int8 // the time at which it ends
	frames     int8 // on one connection, with the handshake; at most maxFrames
	moves      int8 // of the client, to another server or to the same
	standstill int8
	elections  int8
}

const maxFrames = 5

// mark is a moment as the client notes it: twice the time, and 1 more for an answer. An answer comes just
// after what else happens at its time, since the client reads its clock after that.
type mark int8

func (i mark) time() time.Time {
	return worldStart.Add(time.Duration(i/2)*gap + time.Duration(i%2))
}

func markOf(t time.Time) mark {
	d := t.Sub(worldStart)
	return mark(2*(d/gap)) + mark(d%gap)
}

var worldStart = time.Unix(1e9, 0)

// Where the client is connected.
const (
	atFollower int8 = iota
	atFirst         // at the first leader
	atSecond        // at the second, which is elected later
)

// Items of the streams between the follower and its leader. Other numbers are those of requests.
const (
	itemPing    int8 = 100 + iota // to the follower
	itemOverdue                   // the same, after a standstill
	itemList                      // to the leader, with the session; a list without it makes no difference
)

// stream is a stream of items, in order.
type stream struct {
	items [maxFrames + 5]int8
	n     int8
}

func (s *stream) put(item int8) { s.items[s.n] = item; s.n++ }

func (s *stream) take() int8 {
	first := s.items[0]
	copy(s.items[:], s.items[1:s.n])
	s.n--
	s.items[s.n] = 0
	return first
}

// forget removes the requests, whose connection has ended. The pings and lists stay.
func (s *stream) forget() {
	old := *s
	*s = stream{}
	for _, item := range old.items[:old.n] {
		if item >= itemPing {
			s.put(item)
		}
	}
}

func (s *stream) has(item int8) bool {
	for _, one := range s.items[:s.n] {
		if one == item {
			return true
		}
	}
	return false
}

func (s *stream) full() bool { return int(s.n) == len(s.items) }

// sent is a frame of the present connection.
type sent struct {
	kind           int8
	at, got, proof mark
}

// Kinds of frame.
const (
	kindHello   int8 = iota
	kindRead         // a server answers it alone
	kindSync         // through the leader, which answers it alone
	kindWrite        // through the leader, and a quorum agrees
	kindRefused      // a write that a server refuses alone
	kinds
)

// requests are the kinds as the real code sees them: the code of the request, and of its answer.
var requests = [kinds]struct{ op, code int32 }{
	{codec.OpConnect, codec.CodeOK}, {codec.OpPing, codec.CodeOK}, {codec.OpSync, codec.CodeOK}, {codec.OpCreate, codec.CodeOK}, {codec.OpCreate, codec.CodeNoAuth},
}

// remembered is a history of the client.
type remembered struct {
	all [maxFrames]struct{ sent, answered mark }
	n   int8
}

// world is a state. It has no pointers, so that states can be compared.
type world struct {
	now, sentAt int8 // the client sends no more than one frame at one time

	// The servers. leader is the one that a quorum follows, and basis is when each leader last touched the
	// session.
	leader    int8
	basis     [2]int8
	elections int8
	stood     int8 // how often the follower's leader has stood still
	stands    bool
	owes      bool // a ping, since it has stood still until resumed
	resumed   int8
	pinged    int8 // when it queued the last ping

	follows  int8 // the leader of the follower
	heard    bool // since the last list
	up, down stream

	// The connection. Each number counts the frames up to a station of their way: they pass it in order.
	at, moved                         int8
	frames                            [maxFrames]sent
	sent, received, answered, arrived int8
	ready                             [maxFrames]bool // the server can answer them
	late                              [maxFrames]bool // the leader answered them while it owed a ping
	client                            struct {
		hello           mark
		frames, through remembered
		proven, heard   mark
	}
}

// begun returns the worlds in which a client has just been greeted, with a new session. They differ in the
// phase of the pings, and in the server that it is connected to.
func begun(b bounds) []world {
	var all []world
	for _, at := range []int8{atFollower, atFirst} {
		for phase := range int8(b.half) {
			w := world{at: at, pinged: -phase, sent: 1, received: 1, answered: 1, arrived: 1}
			w.client.frames.n, w.client.through.n = 1, 1
			w.client.frames.all[0].answered, w.client.through.all[0].answered = 1, 1
			all = append(all, w)
		}
	}
	return all
}

// move is something that happens: what, and to which frame, server or item.
type move struct {
	what string
	arg  int8
}

func (m move) String() string {
	if strings.Contains(m.what, "%d") {
		return fmt.Sprintf(m.what, m.arg)
	}
	return m.what
}

// moves calls yield with each state that can follow. yield gets a state of its own. A move that the
// assumptions exclude is none.
func (w *world) moves(b bounds, r *rules, yield func(move, *world)) {
	do := func(what string, arg int8, change func(n *world)) {
		n := *w
		change(&n)
		n.normalize(b, r)
		yield(move{what, arg}, &n)
	}
	w.serverMoves(b, do)
	w.streamMoves(do)
	w.clientMoves(b, r, do)
}

// normalize forgets what makes no difference to what can still happen, so that states which differ only in
// that are one.
func (w *world) normalize(b bounds, r *rules) {
	if w.sentAt < w.now {
		w.sentAt = -1
	}
	if r.owns {
		w.client.heard = 0
	}
	w.basis[1-w.leader] = 0 // the other leader expires nothing
	if !w.owes {
		w.resumed = 0
	}
	overdue := w.owes || w.down.has(itemOverdue)
	for i := range w.answered {
		w.ready[i] = false
		if i < w.arrived && (!overdue || !w.late[i]) {
			w.frames[i], w.late[i] = sent{}, false
		}
	}
	if w.pingsNothing(b) {
		w.pinged, w.heard, w.stands, w.owes, w.resumed = 0, false, false, false, 0
		if w.at != atFollower {
			w.up, w.down = stream{}, stream{}
		}
	}
}

// pingsNothing reports whether it makes no difference any more what the follower tells its leader of the
// session.
func (w *world) pingsNothing(b bounds) bool {
	return w.follows != w.leader || w.at != atFollower && w.moved == b.moves
}

// over reports whether nothing can be proven any more: the client sends no more frames, and what the
// frames in flight prove is true already. A leader that has touched the session once has touched it.
func (w *world) over(b bounds, r *rules) bool {
	if w.moved < b.moves || w.sent < b.frames && w.sent > 0 {
		return false
	}
	for _, f := range w.frames[w.arrived:w.sent] {
		if r.loose || f.proof > mark(2*w.basis[w.leader]) {
			return false
		}
	}
	return true
}

// serverMoves are what the leaders do, and time.
func (w *world) serverMoves(b bounds, do func(string, int8, func(*world))) {
	quiet := w.pingsNothing(b)
	due := !quiet && !w.stands && (w.owes || w.now == w.pinged+b.half)
	// A leader pings every half tick, and within g of a standstill.
	if patient := quiet || w.stands || w.owes && w.now < w.resumed+1 || !w.owes && !due; patient && w.now < b.until {
		do("", 0, func(n *world) { n.now++ })
	}
	if due && !w.down.full() {
		do("leader %d pings the follower", w.follows+1, func(n *world) {
			item := itemPing
			if n.owes {
				item = itemOverdue
			}
			n.down.put(item)
			n.pinged, n.owes = n.now, false
		})
	}
	// It does not stand still again before it has queued the ping that it owes.
	if !quiet && !w.stands && !w.owes && w.stood < b.standstill {
		do("leader %d stands still", w.follows+1, func(n *world) { n.stands = true; n.stood++ })
	}
	if w.stands {
		do("leader %d goes on", w.follows+1, func(n *world) {
			n.stands = false
			if n.now > n.pinged+b.half {
				n.owes, n.resumed = true, n.now
			}
		})
	}
	if w.elections < b.elections {
		do("leader 2 is elected, and gives the session its whole timeout", 0, func(n *world) {
			n.elections++
			n.leader, n.basis[1] = 1, n.now
		})
	}
	if w.follows != w.leader { // A server that loses its leader closes its clients' connections.
		for phase := range int8(b.half) {
			do("the follower follows leader 2, and closes its connections", 0, func(n *world) {
				n.follows, n.heard, n.stands, n.owes = n.leader, false, false, false
				n.up, n.down, n.pinged = stream{}, stream{}, n.now-phase
				if n.at == atFollower {
					n.sent, n.received, n.answered, n.arrived = 0, 0, 0, 0
					n.ready, n.late, n.frames = [maxFrames]bool{}, [maxFrames]bool{}, [maxFrames]sent{}
				}
			})
		}
	}
}

// streamMoves are what comes over the streams between the follower and its leader.
func (w *world) streamMoves(do func(string, int8, func(*world))) {
	if w.up.n > 0 && !w.stands && !w.down.full() {
		what := "the leader takes request %d"
		if w.up.items[0] == itemList {
			what = "the leader takes the list"
		}
		do(what, w.up.items[0], func(n *world) { n.leaderTakes(n.up.take()) })
	}
	if w.down.n > 0 && !w.up.full() {
		what := "the follower has the leader's answer to request %d"
		switch item := w.down.items[0]; {
		case item >= itemPing && w.heard:
			what = "the follower answers a ping: the session is on the list"
		case item >= itemPing:
			what = "the follower answers a ping: the session is not on the list"
		}
		do(what, w.down.items[0], func(n *world) {
			switch item := n.down.take(); {
			case item < itemPing:
				n.ready[item] = true
				n.answer()
			case n.heard:
				n.heard = false
				n.up.put(itemList)
			}
		})
	}
}

// leaderTakes is what the leader of the follower does with an item.
func (w *world) leaderTakes(item int8) {
	switch {
	case item == itemList:
		w.basis[w.follows] = w.now
		return
	case w.frames[item].kind == kindHello:
		w.basis[w.follows] = w.now
	case w.frames[item].kind == kindWrite && w.follows != w.leader:
		return // no quorum agrees, ever
	}
	w.late[item] = w.owes
	w.down.put(item)
}

// answer has the server answer all that it can, in order.
func (w *world) answer() {
	for w.answered < w.received && w.ready[w.answered] {
		w.answered++
	}
}

// clientMoves are what the client does, and what comes to it and its server.
func (w *world) clientMoves(b bounds, r *rules, do func(string, int8, func(*world))) {
	greeted := w.arrived > 0
	if greeted && w.sent < b.frames && w.sentAt < w.now {
		for kind := kindRead; kind < kinds; kind++ {
			last := w.sent+1 == b.frames && w.moved == b.moves
			if kind == kindRefused && !r.refusals || last && kind < kindWrite && !r.loose {
				continue // a refused write proves no more than a read, and the last frame nothing if it is no write
			}
			do([...]string{"", "the client sends %d, a read", "the client sends %d, a sync", "the client sends %d, a write",
				"the client sends %d, a write that its server refuses"}[kind], w.sent, func(n *world) { n.send(kind, r, b) })
		}
	}
	standing := w.stands && w.at-atFirst == w.follows // the leader that it is connected to
	if w.received < w.sent && !w.up.full() && !standing && !w.excluded() {
		do("the server receives %d", w.received, func(n *world) { n.receive() })
	}
	if w.arrived < w.answered {
		do("the client has the answer to %d", w.arrived, func(n *world) { n.arrive(r, b) })
	}
	if w.moved < b.moves && w.sentAt < w.now {
		for at := atFollower; at <= atFirst+w.elections; at++ {
			what := "the client moves to leader %d, and sends the handshake"
			if at == atFollower {
				what = "the client moves to the follower, and sends the handshake"
			}
			do(what, at, func(n *world) {
				n.moved++
				n.at, n.sentAt = at, n.now
				n.up.forget()
				n.down.forget()
				n.ready, n.late, n.frames = [maxFrames]bool{}, [maxFrames]bool{}, [maxFrames]sent{}
				n.sent, n.received, n.answered, n.arrived = 1, 0, 0, 0
				n.frames[0] = sent{kind: kindHello, at: mark(2 * n.now)}
			})
		}
	}
}

// excluded reports whether the follower cannot forward the next frame yet: an overdue ping falls behind
// the answer sent just before it by no more than the rest of g and the client's round trip. So the
// follower answers it ahead of a write that the client has sent g after that answer.
func (w *world) excluded() bool {
	next := w.frames[w.received]
	if w.at != atFollower || next.kind != kindWrite || !w.owes && !w.down.has(itemOverdue) {
		return false
	}
	for i := range w.arrived {
		if w.late[i] && w.frames[i].got+2 <= next.at {
			return true
		}
	}
	return false
}

// receive is what a server does with the next frame.
func (w *world) receive() {
	i := w.received
	w.received++
	kind := w.frames[i].kind
	if w.at == atFollower {
		if kind != kindHello {
			w.heard = true
		}
		if kind == kindHello || kind == kindSync || kind == kindWrite {
			w.up.put(i)
		} else {
			w.ready[i] = true
		}
	} else {
		me := w.at - atFirst
		w.basis[me] = w.now // its own clients it hears of at once
		w.ready[i] = kind != kindWrite || me == w.leader
	}
	w.answer()
}
