package clock

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// An idea that the code does not follow: a session that sends two syncs, and counts on the writes of others for the
// proof that a quorum agreed. docs/clock.md says why. Here it is on the trail and the clock of the real code.

// others is what other clients write.
type others struct {
	by      [2]struct{ acked, committed int8 } // of each leader
	applied int8                               // by the follower, of its leader
	waits   [maxFrames]int8                    // syncs that the leader answers when it has committed so much
}

// claim is what a sync proves as soon as an answer has a higher zxid than the one to the sync.
type claim struct {
	proof mark
	zxid  int8
}

// epochSize is more than the writes of one leader.
const epochSize = 16

// zxid returns the number of the last transaction that the client's server has applied.
func (w *world) zxid() int8 {
	if w.at == atFollower {
		return w.follows*epochSize + w.others.applied
	}
	me := w.at - atFirst
	return me*epochSize + w.others.by[me].committed
}

// follow has the follower follow another leader, which sends it all that it lacks.
func (o *others) follow(leader int8) { o.applied, o.waits = o.by[leader].committed, [maxFrames]int8{} }

// holds has the follower's leader keep a sync until it has committed all that it has proposed, and reports whether it
// does.
func (w *world) holds(item int8) bool {
	o := w.others.by[w.follows]
	if o.acked == o.committed {
		return false
	}
	w.others.waits[item] = o.acked
	return true
}

// othersMoves are the writes of other clients. A leader proposes one and a quorum acknowledges it, and at any time
// later the leader has the acknowledgements. If they came later than at once, or never, they would prove no less.
func (w *world) othersMoves(b bounds, do func(string, int8, func(*world))) {
	for me := range int8(2) {
		o := w.others.by[me]
		if w.stands && me == w.follows || me == 1 && b.moves == 0 {
			continue
		}
		if o.acked < b.others && me == w.leader { // a server that has left a leader acknowledges nothing
			do("a quorum acknowledges a write of another client, which leader %d has proposed", me+1,
				func(n *world) { n.others.by[me].acked++ })
		}
		if o.committed < o.acked && int(w.down.n)+maxFrames < len(w.down.items) {
			do("leader %d has the acknowledgements, and commits the write", me+1, func(n *world) { n.commit(me) })
		}
	}
}

func (w *world) commit(me int8) {
	w.others.by[me].committed++
	if me != w.follows {
		return
	}
	w.down.put(itemCommit)
	for item, n := range w.others.waits {
		if n != 0 && n == w.others.by[me].committed {
			w.others.waits[item] = 0
			w.late[item] = w.owes
			w.down.put(int8(item))
		}
	}
}

// mayFollow reports whether the client may send a frame of a kind, with so many left on its last connection: at the end
// a sync and a read that shows what others have written, and no writes.
func mayFollow(kind int8, isLast bool, left int8) bool {
	switch {
	case isLast && left == 2:
		return kind == kindSync
	case isLast && left == 1:
		return kind == kindRead
	}
	return kind != kindWrite
}

// claimsNothing reports whether what syncs have shown and will show is true already.
func (w *world) claimsNothing(b bounds) bool {
	known := mark(2 * w.basis[w.leader])
	for _, f := range w.frames[w.arrived:w.sent] {
		if f.proof > known {
			return false
		}
	}
	for _, c := range w.client.claims {
		if c.proof > known {
			return false
		}
	}
	return w.moved == b.moves && (w.sent == 0 || w.sent >= b.frames-1)
}

// othersRules send two syncs, and count on the writes of others.
func othersRules() rules {
	r := realRules()
	r.loose, r.others = true, true
	r.send = func(t *trail, op int32, at time.Time) Sending {
		s := t.sends(0, op, at)
		if op == codec.OpSync {
			s.proof = t.proof(at)
		}
		return s
	}
	r.shows = func(w *world, c *Clock, f *sent) { w.shown(c, f, f.zxid) }
	return r
}

// shown takes the zxid of an answer. measure is the number that a later answer has to exceed.
func (w *world) shown(c *Clock, f *sent, measure int8) {
	for i, one := range w.client.claims {
		if one.proof != 0 && f.zxid > one.zxid {
			c.Prove(one.proof.time())
			w.client.claims[i] = claim{}
		}
	}
	if f.kind == kindSync && f.proof > 0 {
		w.client.claims[w.arrived-1] = claim{f.proof, measure}
	}
}

// othersExplorations have room for a frame, two syncs and the answer that shows the write of another client. The first
// two have it for a handshake, a sync and that answer.
var othersExplorations = []bounds{
	{half: 1, until: 3, frames: 3, moves: 1, elections: 1, others: 1, only: atFollower + 1}, // in the quick tests
	{half: 1, until: 4, frames: 3, moves: 1, elections: 1, others: 2, only: atFollower + 1},
	{half: 1, until: 6, frames: 5, elections: 1, others: 1, only: atFollower + 1},
	{half: 1, until: 5, frames: 5, standstill: 1, elections: 1, others: 1, only: atFollower + 1},
}

// A client of a follower may count on the writes of others.
func TestExploreOthers(t *testing.T) {
	states, began := 0, time.Now()
	for _, b := range longtest.Pick(othersExplorations[:1], othersExplorations[1:]) {
		x := explore(b, othersRules())
		if x.lie != nil {
			t.Errorf("the client counts on its session for too long:\n%s", x.schedule())
		}
		t.Logf("%+v: %d states; in %d of them a sync waits for the write of another", b, len(x.seen), x.claims)
		if x.claims == 0 {
			t.Error("the client proves nothing: this shows nothing")
		}
		states += len(x.seen)
	}
	longtest.Covered(t, "%d states of a clock that counts on writes of others, in %.0f s", states, time.Since(began).Seconds())
}

// brokenOthers are the idea but for one thing. The first is why it is no more than an idea.
var brokenOthers = []struct {
	name, why string
	b         bounds
	breaks    func(r *rules)
}{
	{"at-the-leader", "counts on the writes of others, although it is connected to the leader",
		bounds{half: 1, frames: 3, moves: 1, elections: 1, others: 1, only: atFirst + 1}, func(*rules) {}},
	{"at-the-leader-for-long", "the same, and has sent more than the handshake",
		bounds{half: 1, until: 5, frames: 5, elections: 1, others: 1, only: atFirst + 1}, func(*rules) {}},
	{"earlier-answer", "measures by an answer before the sync",
		bounds{half: 1, frames: 3, moves: 1, elections: 1, others: 1, only: atFollower + 1}, measuredBy(0)},
	{"no-higher-zxid", "takes the sync alone for a proof",
		bounds{half: 1, frames: 3, moves: 1, elections: 1, others: 1, only: atFollower + 1}, measuredBy(-1)},
	{"one-sync", "takes the sync itself for the request before it",
		bounds{half: 1, frames: 4, others: 1, only: atFollower + 1}, func(r *rules) {
			r.send = func(t *trail, op int32, at time.Time) Sending {
				s := t.sends(0, op, at)
				if op == codec.OpSync {
					s.proof = t.reach(at)
				}
				return s
			}
		}},
}

// measuredBy has the zxid of any answer count that is higher than the given one, and that of the sync itself.
func measuredBy(zxid int8) func(r *rules) {
	return func(r *rules) {
		r.shows = func(w *world, c *Clock, f *sent) {
			w.shown(c, f, zxid)
			w.shown(c, f, zxid)
		}
	}
}

// The explorer finds what would be wrong.
func TestExploreBrokenOthers(t *testing.T) {
	for _, v := range brokenOthers {
		t.Run(v.name, func(t *testing.T) {
			if v.b.frames == maxFrames {
				longtest.Only(t)
			}
			r := othersRules()
			v.breaks(&r)
			found(t, v.why, v.b, r)
		})
	}
}
