package clock

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// rules are the real code, or what a broken variant does in the place of a part of it.
type rules struct {
	// What a request proves is not fixed when it is sent, or other frames than writes prove something. If
	// not, some states need not be visited: see over.
	loose    bool
	refusals bool // writes are sent that a server refuses alone, as if they proved more than reads
	half     func(half time.Duration) time.Duration
	begin    func(t *trail, hello, greeted time.Time)
	send     func(t *trail, op int32, at time.Time) Sending
	take     func(t *trail, s Sending, code int32, now time.Time) evidence
	greet    func(c *Clock, sent time.Time) // by a server that has the session already
	prove    func(c *Clock, a Answered)
	owns     bool
}

// realRules call the code that connections and sessions call.
func realRules() rules {
	return rules{
		half:  func(half time.Duration) time.Duration { return half }, // the clocks of this world are right
		begin: func(t *trail, hello, greeted time.Time) { t.begin(hello, greeted, exploredTimeout) },
		send:  func(t *trail, op int32, at time.Time) Sending { return t.sends(0, op, at) },
		take:  (*trail).takes,
		greet: (*Clock).Heard, // as in greeted, internal/core/wireevents.go
		prove: (*Clock).Take,
		owns:  true,
	}
}

// exploredTimeout is so long that no session expires before the end of its world.
const exploredTimeout = time.Hour

// trail returns what the client remembers of its connection, as the real type.
func (w *world) trail(r *rules, b bounds) *trail {
	t := &trail{half: r.half(time.Duration(b.half) * gap), hello: w.client.hello.time()}
	t.frames, t.through = w.client.frames.history(), w.client.through.history()
	return t
}

func (m *remembered) history() history {
	h := history{all: make([]exchange, m.n, maxFrames+1), res: exploredRes}
	for i, e := range m.all[:m.n] {
		h.all[i] = exchange{e.sent.time(), e.answered.time()}
	}
	return h
}

// exploredRes is less than a unit. Real timeouts have one that is less than h.
const exploredRes = gap / 2

func (w *world) remember(t *trail) {
	w.client.hello = markOf(t.hello)
	w.client.frames.keep(t.frames)
	w.client.through.keep(t.through)
}

func (m *remembered) keep(h history) {
	*m = remembered{n: int8(len(h.all))}
	for i, e := range h.all {
		m.all[i].sent, m.all[i].answered = markOf(e.sent), markOf(e.answered)
	}
}

// clock returns the client's clock, as the real type.
func (w *world) clock() *Clock {
	c := New(worldStart)
	c.SetLease(exploredTimeout)
	c.Prove(w.client.proven.time())
	c.Heard(w.client.heard.time())
	return c
}

func (w *world) read(c *Clock) {
	w.client.proven = markOf(c.Proven())
	w.client.heard = markOf(c.start.Add(time.Duration(c.heard.Load())))
}

// send has the client send a frame.
func (w *world) send(kind int8, r *rules, b bounds) {
	at := mark(2 * w.now)
	w.sentAt = w.now
	s := r.send(w.trail(r, b), requests[kind].op, at.time())
	w.frames[w.sent] = sent{kind: kind, at: at}
	if !s.proof.IsZero() {
		w.frames[w.sent].proof = markOf(s.proof)
	}
	w.sent++
}

// arrive gives the client the next answer.
func (w *world) arrive(r *rules, b bounds) {
	f := &w.frames[w.arrived]
	w.arrived++
	f.got = mark(2*w.now + 1)
	t, c := w.trail(r, b), w.clock()
	if f.kind == kindHello {
		r.begin(t, f.at.time(), f.got.time())
		t.frames.res, t.through.res = exploredRes, exploredRes
		r.greet(c, f.at.time())
	} else {
		e := r.take(t, Sending{Op: requests[f.kind].op, At: f.at.time()}, requests[f.kind].code, f.got.time())
		if e != evidenceNone {
			r.prove(c, Answered{Sent: f.at.time(), Quorum: e == evidenceQuorum, Touched: f.proof.time()})
		}
	}
	w.remember(t)
	w.read(c)
}

// lies reports whether the client counts on its session for longer than the leader that a quorum follows.
func (w *world) lies(r *rules) bool {
	now := mark(2 * w.now).time()
	expires := mark(2 * w.basis[w.leader]).time().Add(exploredTimeout)
	return w.clock().Remaining(now, r.owns) > expires.Sub(now)
}

// explorer visits each state once. It tells states apart by a hash of 64 bits: with ten million states,
// the chance that it takes two for one is one in 300,000.
type explorer struct {
	b    bounds
	r    rules
	seed maphash.Seed
	seen map[uint64]struct{}
	path []move
	lie  []move // a way to a state in which the client counts on too much
	// frames counts the states in which a write is on its way that will prove more than the handshake.
	frames int
}

// explore visits all states within the bounds, or as many as it takes to find a lie.
func explore(b bounds, r rules) *explorer {
	x := &explorer{b: b, r: r, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
	for _, w := range begun(b) {
		where := "the client has been greeted by the follower"
		if w.at != atFollower {
			where = "the client has been greeted by leader 1"
		}
		x.path = append(x.path[:0], move{what: where})
		x.visit(&w)
	}
	return x
}

func (x *explorer) visit(w *world) {
	key := maphash.Comparable(x.seed, *w)
	if _, known := x.seen[key]; known || x.lie != nil {
		return
	}
	x.seen[key] = struct{}{}
	for _, f := range w.frames[w.arrived:w.sent] {
		if f.proof > w.client.hello {
			x.frames++
			break
		}
	}
	if w.lies(&x.r) {
		x.lie = append([]move(nil), x.path...)
		return
	}
	if w.over(x.b, &x.r) {
		return
	}
	w.moves(x.b, &x.r, func(m move, next *world) {
		x.path = append(x.path, m)
		x.visit(next)
		x.path = x.path[:len(x.path)-1]
	})
}

// schedule returns the way to the lie, as a person can read it.
func (x *explorer) schedule() string {
	var b strings.Builder
	now := 0
	for _, m := range x.lie {
		if m.what == "" {
			now++
			continue
		}
		fmt.Fprintf(&b, "    t=%d  %s\n", now, m)
	}
	return b.String()
}

// explorations are what TestExplore explores. Each of them has room for a frame, a request and a write,
// one after the other, as the rule wants them. Together they take less than a minute of one processor.
var explorations = []bounds{
	{half: 1, until: 5, frames: 4}, // in the quick tests, and no other
	{half: 1, until: 7, frames: 4},
	{half: 2, until: 6, frames: 4, standstill: 1},
	{half: 1, until: 5, frames: 4, standstill: 1, elections: 1},
	{half: 1, until: 5, frames: 4, moves: 1, elections: 1},
	{half: 1, until: 4, frames: 3, moves: 1, standstill: 1, elections: 1}, // proves only handshakes
}

// The client never counts on its session for longer than the servers, whatever happens within the bounds.
func TestExplore(t *testing.T) {
	states, began := 0, time.Now()
	for _, b := range longtest.Pick(explorations[:1], explorations[1:]) {
		x := explore(b, realRules())
		if x.lie != nil {
			t.Errorf("the client counts on its session for too long:\n%s", x.schedule())
		}
		t.Logf("%+v: %d states; in %d of them a write is to prove more than the handshake", b, len(x.seen), x.frames)
		if x.frames == 0 && b.until > 4 {
			t.Error("the client proves nothing: this shows nothing")
		}
		states += len(x.seen)
	}
	longtest.Covered(t, "%d states of the lease clock in %.0f s", states, time.Since(began).Seconds())
}

// brokenRules are the real code but for one thing, as the clock's mutants in package simulation are.
var brokenRules = []struct {
	name, why string
	b         bounds // within which it is found; until is as long as need be
	breaks    func(r *rules)
}{
	{"from-sending", "counts from when an answered write was sent",
		bounds{half: 1, frames: 2}, func(r *rules) {
			r.send = func(t *trail, op int32, at time.Time) Sending {
				s := t.sends(0, op, at)
				if !s.proof.IsZero() {
					s.proof = at
				}
				return s
			}
		}},
	{"arrival-clock", "counts from when the answer came",
		bounds{half: 1, frames: 2}, func(r *rules) {
			r.loose = true
			take, prove, came := r.take, r.prove, time.Time{}
			r.take = func(t *trail, s Sending, code int32, now time.Time) evidence {
				came = now
				return take(t, s, code, now)
			}
			r.prove = func(c *Clock, a Answered) {
				a.Touched = came
				prove(c, a)
			}
		}},
	{"write-for-request", "takes the write itself for the request before it",
		bounds{half: 1, frames: 3}, func(r *rules) {
			r.send = proofBy(func(t *trail, at time.Time) time.Time { return t.reach(at) })
		}},
	{"no-gap", "takes a request whose answer came just before the write",
		bounds{half: 1, frames: 4, standstill: 1}, func(r *rules) {
			r.send = proofBy(func(t *trail, at time.Time) time.Time {
				request, ok := t.through.sent(at)
				if !ok {
					return t.hello
				}
				return t.reach(request)
			})
		}},
	{"no-half", "does not take off half a tick",
		bounds{half: 1, frames: 4}, func(r *rules) { r.half = func(time.Duration) time.Duration { return 0 } }},
	{"half-too-short", "takes a quarter of a tick for half of one",
		bounds{half: 2, frames: 4}, func(r *rules) { r.half = func(half time.Duration) time.Duration { return half / 2 } }},
	{"sent-for-answered", "counts a frame that was on its way when the list was made",
		bounds{half: 1, frames: 4}, func(r *rules) {
			r.take = func(t *trail, s Sending, code int32, now time.Time) evidence {
				e := shows(s.Op, code)
				t.frames.add(s.At, s.At)
				if e != evidenceNone {
					t.through.add(s.At, now)
				}
				return e
			}
		}},
	{"request-by-answer", "counts a request from its answer",
		bounds{half: 1, frames: 4}, func(r *rules) {
			r.take = func(t *trail, s Sending, code int32, now time.Time) evidence {
				e := shows(s.Op, code)
				t.frames.add(s.At, now)
				if e != evidenceNone {
					t.through.add(now, now)
				}
				return e
			}
		}},
	{"read-for-request", "takes any answer for one of the leader",
		bounds{half: 1, frames: 4}, func(r *rules) {
			r.take = func(t *trail, s Sending, code int32, now time.Time) evidence {
				t.answered(s.At, now, true)
				return shows(s.Op, code)
			}
		}},
	{"sync-proves", "takes a sync for a proof",
		bounds{half: 1, frames: 2, moves: 1, elections: 1}, func(r *rules) {
			r.loose = true
			r.send = func(t *trail, op int32, at time.Time) Sending {
				s := t.sends(0, op, at)
				if shows(op, codec.CodeOK) >= evidenceLeader {
					s.proof = t.proof(at)
				}
				return s
			}
			r.prove = func(c *Clock, a Answered) {
				a.Quorum = true
				c.Take(a)
			}
		}},
	{"handshake-proves", "takes the handshake for a proof",
		bounds{half: 1, frames: 1, moves: 1, elections: 1}, func(r *rules) { r.loose, r.greet = true, (*Clock).Prove }},
	{"refusal-proves", "takes a follower's refusal for a quorum's answer",
		bounds{half: 1, frames: 4}, func(r *rules) {
			r.refusals = true
			r.take = func(t *trail, s Sending, code int32, now time.Time) evidence {
				return t.takes(s, codec.CodeOK, now)
			}
		}},
	{"greeting-late", "counts a handshake from its answer",
		bounds{half: 1, frames: 2, moves: 1}, func(r *rules) {
			begin := r.begin
			r.begin = func(t *trail, _, greeted time.Time) { begin(t, greeted, greeted) }
		}},
	{"heard-for-proven", "goes by what leaders have answered, although it owns nodes",
		bounds{half: 1, frames: 2}, func(r *rules) { r.loose, r.owns = true, false }},
}

// proofBy returns the real send with another proof.
func proofBy(proof func(t *trail, at time.Time) time.Time) func(*trail, int32, time.Time) Sending {
	return func(t *trail, op int32, at time.Time) Sending {
		s := t.sends(0, op, at)
		if !s.proof.IsZero() {
			s.proof = proof(t, at)
		}
		return s
	}
}

// The explorer finds each broken variant of the rule, with a schedule that is as short as can be.
func TestExploreBroken(t *testing.T) {
	for _, v := range brokenRules {
		t.Run(v.name, func(t *testing.T) {
			if v.b.frames > 3 {
				longtest.Only(t)
			}
			r := realRules()
			v.breaks(&r)
			found(t, v.why, v.b, r)
		})
	}
	longtest.Covered(t, "%d broken variants of the lease clock, found", len(brokenRules))
}

// found fails unless the explorer finds a lie.
func found(t *testing.T, why string, b bounds, r rules) {
	t.Helper()
	states := 0
	for ; b.until <= 7; b.until++ {
		x := explore(b, r)
		states += len(x.seen)
		if x.lie != nil {
			t.Logf("%s: found in %d states:\n%s", why, states, x.schedule())
			return
		}
	}
	t.Errorf("%s: not found in %d states", why, states)
}
