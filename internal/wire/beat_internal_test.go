package wire

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Which heartbeats are due when. With a timeout of 20 s there is a ping each second, a round each 4 s,
// and a sync of an idle session each 6.67 s at most, with a ping in the middle.
func TestBeatDue(t *testing.T) {
	const timeout = 20 * time.Second
	start := time.Now()
	at := func(s float64) time.Time { return seconds(s).after(start) }
	for _, c := range []struct {
		name  string
		round float64 // when the last round began
		now   float64
		agree []float64
		f     facts
		want  []duty
	}{
		{"idle, nothing due", 0, 3, nil, facts{}, nil},
		{"idle, a ping due", 0, 3.4, nil, facts{lastSent: at(3)}, []duty{dutyPing}},
		{"idle, a sync due", 0, 6.7, nil, facts{}, []duty{dutySync}},
		{"idle, the round before could not prove much", 6, 10, nil, facts{}, []duty{dutySync}},
		{"idle, but that round is not a fifth of a timeout ago", 7, 10, nil, facts{}, []duty{dutyPing}},
		{"idle, the write of a round is not needed any more", 0, 3, []float64{2}, facts{}, nil},
		{"slow and idle: as often as who owns nodes", 0, 4, nil, facts{slow: true}, []duty{dutySync}},
		{"slow and idle: pings too", 0, 3, nil, facts{slow: true, lastSent: at(2)}, []duty{dutyPing}},
		{"owning, a ping due", 0, 3, nil, facts{owns: true, lastSent: at(2), proven: at(0)}, []duty{dutyPing}},
		{"owning, the user has just sent something", 0, 3, nil, facts{owns: true, lastSent: at(2.5), proven: at(0)}, nil},
		{"owning, a round due", 0, 10, nil, facts{owns: true, proven: at(0)}, []duty{dutySync}},
		{"owning, the user's own requests prove enough", 0, 10, nil, facts{owns: true, lastSent: at(9.9), proven: at(6)}, nil},
		{"owning, the round before is not a fifth of a timeout ago", 7, 10, nil, facts{owns: true, lastSent: at(9.9), proven: at(0)}, nil},
		{"owning, what a slow answer held up came after the round before", 7, 8, nil, facts{owns: true, lastSent: at(7.9), proven: at(0), reach: at(6)}, []duty{dutySync}},
		{"owning, as much has been answered as time has passed", 7, 9.5, nil, facts{owns: true, lastSent: at(9.4), proven: at(0), reach: at(4.4)}, nil},
		{"owning, a write due", 9, 10, []float64{9.5, 12}, facts{owns: true, proven: at(0)}, []duty{dutyAgree}},
		{"owning, a write and the next round", 0, 10, []float64{9.5}, facts{owns: true, proven: at(0)}, []duty{dutyAgree, dutySync}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := beat{timeout: timeout, round: at(c.round), reach: at(0)}
			for _, a := range c.agree {
				b.agree = append(b.agree, at(a))
			}
			c.f.half = time.Second
			if diff := cmp.Diff(c.want, b.due(at(c.now), c.f)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBeatNext(t *testing.T) {
	start := time.Now()
	b := beat{timeout: 20 * time.Second}
	if got := b.next(start).Sub(start); got != time.Second {
		t.Errorf("looks again after %v", got)
	}
	b.began(7)
	if b.answered(8, true, start) || !b.answered(7, true, start) || b.answered(7, true, start) {
		t.Error("only the sync of a round has a write follow it, and once")
	}
	b.began(9)
	if b.answered(9, false, start) || len(b.syncs) != 0 {
		t.Error("a refused sync has no write follow it, and is forgotten")
	}
	if got := b.next(start).Sub(start); got != gap {
		t.Errorf("looks again after %v, want %v", got, gap)
	}
}

// Heartbeats go out while none is answered, and a round's write follows its sync.
func TestBeatsAreNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.events.owns = true
		b.greet(t) // a timeout of 6 s: a ping each 0.3 s, a round each 1.2 s
		if diff := cmp.Diff([]int32{OpMulti}, b.beaten()); diff != "" {
			t.Errorf("with the greeting (-want +got):\n%s", diff)
		}
		time.Sleep(8 * time.Second)
		count := map[int32]int{}
		for _, op := range b.beaten() {
			count[op]++
		}
		if count[OpSync] < 3 || count[OpPing] < 10 || count[OpMulti] != 0 {
			t.Errorf("%v in 8 s without an answer", count)
		}
	})
}

func TestRoundIsSyncThenWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.events.owns = true
		b.greet(t)
		b.answer(t, replyFrame(firstXid-1, 0, bodies[OpMulti]...))
		b.beaten()
		var xid int32
		for xid == 0 {
			switch f := <-b.got; f[1] {
			case OpSync:
				xid = f[0]
			case OpPing:
				b.answer(t, replyFrame(XidPing, 0))
			}
		}
		b.answer(t, replyFrame(xid, 0, bodies[OpSync]...))
		answered := time.Now()
		for f := range b.got {
			if f[1] == OpMulti {
				break
			}
		}
		if d := time.Since(answered); d != gap {
			t.Errorf("the write came %v after the answer to the sync, want %v", d, gap)
		}
	})
}

// An idle session sends as many pings as syncs, and more of both if ticks are long. The pings are in the middle between
// the syncs, whatever the user sends.
func TestIdleBeats(t *testing.T) {
	for _, c := range []struct {
		half        time.Duration // of a tick
		least, most time.Duration // from one heartbeat to the next
	}{
		{600 * time.Millisecond, time.Second, time.Second},
		{1500 * time.Millisecond, 600 * time.Millisecond, 730 * time.Millisecond},
	} {
		t.Run(c.half.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testIdleBeats(t, c.half, c.least, c.most) })
		})
	}
}

// testIdleBeats wants from least to most between two heartbeats, with a timeout of 6 s. The first ones follow the
// greeting, and come as if ticks were short.
func testIdleBeats(t *testing.T, half, least, most time.Duration) {
	b := newBench(t)
	b.cfg.Half = func(time.Duration) time.Duration { return half }
	b.greet(t)
	last := time.Now()
	for i := range 60 {
		time.Sleep(300 * time.Millisecond)
		b.ask(OpExists)
		var f [2]int32
		for f = <-b.got; f[1] == OpExists; f = <-b.got {
			b.answer(t, replyFrame(f[0], CodeNoNode))
		}
		want := []int32{OpSync, OpPing}[i%2]
		since := time.Since(last).Round(10 * time.Millisecond)
		if f[1] != want || i >= 4 && (since < least || since > most) {
			t.Fatalf("heartbeat %d is a request of kind %d after %v, want %d after %v to %v", i, f[1], since, want, least, most)
		}
		last = time.Now()
		b.answer(t, replyFrame(f[0], CodeOK, bodies[f[1]]...))
	}
}

// idler is a session whose schedule runs in time of its own, by steps. It may own nodes, or have slow answers, for a
// while. Requests are answered in their order.
type idler struct {
	now, slowUntil time.Time
	lastSent       time.Time
	delay          time.Duration // until an answer comes
	owns           bool
	beat           beat
	trail          trail
	clock          *Clock
	flight         []exchange
	kinds          []int32
	proofs         []time.Time
}

const (
	idlerTimeout = 10 * time.Second
	idlerStep    = 10 * time.Millisecond
	slowest      = 250 * time.Millisecond // answers
)

func newIdler(greeting, half time.Duration) *idler {
	hello := time.Now()
	s := &idler{now: hello.Add(greeting), delay: time.Millisecond, clock: NewClock(hello), trail: trail{half: half}}
	s.trail.begin(hello, s.now, idlerTimeout)
	s.trail.frames.res, s.trail.through.res = 0, 0 // so that bounds need not tell of requests that were left out
	s.beat.begin(s.now, idlerTimeout, false)
	s.clock.SetLease(idlerTimeout - standardMargin(idlerTimeout))
	s.clock.Prove(hello)
	return s
}

func (s *idler) send(op int32) {
	s.lastSent = s.now
	at := s.now.Add(s.delay)
	if n := len(s.flight); n > 0 && at.Before(s.flight[n-1].answered) {
		at = s.flight[n-1].answered
	}
	s.flight = append(s.flight, exchange{sent: s.now, answered: at})
	s.kinds = append(s.kinds, op)
	s.proofs = append(s.proofs, s.trail.proof(s.now))
}

func (s *idler) step() {
	s.now = s.now.Add(idlerStep)
	for len(s.flight) > 0 && !s.flight[0].answered.After(s.now) {
		f, op := s.flight[0], s.kinds[0]
		s.trail.answered(f.sent, f.answered, op != OpPing)
		if s.now.Sub(f.sent) > idlerTimeout/slowPerTimeout {
			s.slowUntil = s.now.Add(idlerTimeout)
		}
		if op != OpPing {
			s.clock.Heard(f.sent)
		}
		if op == OpSync {
			s.beat.answered(1, true, s.now)
		}
		if op == OpMulti {
			s.clock.Prove(s.proofs[0])
		}
		s.flight, s.kinds, s.proofs = s.flight[1:], s.kinds[1:], s.proofs[1:]
	}
	for _, d := range s.beat.due(s.now, facts{
		owns: s.owns, slow: s.now.Before(s.slowUntil), lastSent: s.lastSent,
		proven: s.clock.Proven(), reach: s.trail.reach(s.now), half: s.trail.half,
	}) {
		if d == dutySync {
			s.beat.began(1)
		}
		s.send([]int32{OpPing, OpSync, OpMulti}[d])
	}
}

// The first write of a session that has been idle proves enough for its lease to outlast slow commits, whatever came before
// it was idle: locks, or slow answers. It proves that the leader has touched the session half a timeout before it, or later.
// If ticks are long, that takes two timeouts, and until then it is 0.6 of a timeout.
func TestIdleProof(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		half := rapid.SampledFrom([]time.Duration{
			idlerStep, idlerTimeout / 10, idlerTimeout / 6, idlerTimeout / 5, idlerTimeout / 4,
		}).Draw(t, "half a tick")
		s := newIdler(idlerStep, half)
		for range rapid.IntRange(0, 5).Draw(t, "phases") {
			s.owns = rapid.Bool().Draw(t, "owns")
			s.delay = rapid.SampledFrom([]time.Duration{idlerStep, slowest / 2, slowest}).Draw(t, "delay")
			for range rapid.IntRange(1, 1500).Draw(t, "steps") {
				s.step()
			}
			if s.owns {
				s.send(OpMulti) // the release
			}
		}
		s.owns, s.delay = false, idlerStep
		for i := range 3000 {
			s.step()
			idle := time.Duration(i) * idlerStep
			most := idlerTimeout / 2
			if half > idlerTimeout/10 && idle < 2*idlerTimeout {
				most = idlerTimeout * 6 / 10
			}
			most += gap + slowest + 5*idlerStep
			if age := s.now.Sub(s.trail.proof(s.now)); age > most && i > 50 {
				t.Fatalf("%v after it became idle, a write would prove what was %v ago, want %v at most", idle, age, most)
			}
		}
	})
}

// The first sync of an idle session comes early enough for it to live if the greeting and the answer to that sync take less
// than 73 % of the timeout together.
func TestIdleLivesWithSlowAnswers(t *testing.T) {
	for _, c := range []struct{ greeting, answers time.Duration }{
		{3 * time.Second, 3 * time.Second}, {3600 * time.Millisecond, 3600 * time.Millisecond},
		{4400 * time.Millisecond, 2800 * time.Millisecond}, {7 * time.Second, 10 * time.Millisecond},
	} {
		s := newIdler(c.greeting, idlerTimeout/10)
		s.delay = c.answers
		for since := time.Duration(0); since < 20*idlerTimeout; since += idlerStep {
			s.step()
			if s.clock.Remaining(s.now, false) <= 0 {
				t.Errorf("with a greeting that takes %v, and answers that take %v, the session is lost after %v", c.greeting, c.answers, since)
				break
			}
		}
	}
}

// After a sync, one ping is enough for a session that owns nothing.
func TestIdlePingsOnce(t *testing.T) {
	start := time.Now()
	b := beat{timeout: 20 * time.Second, round: start, reach: start}
	for i, want := range [][]duty{{dutyPing}, nil, nil, {dutySync}, nil, {dutyPing}} {
		now := start.Add(time.Duration(i) * time.Second).Add(4 * time.Second)
		if i == 5 {
			now = now.Add(2 * time.Second)
		}
		if diff := cmp.Diff(want, b.due(now, facts{half: time.Second, reach: now.Add(-3 * time.Second)})); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", now.Sub(start), diff)
		}
	}
}

// A ping of a session that owned nodes when it sent it is too early for the next sync of an idle one.
func TestIdlePingsAfterOwning(t *testing.T) {
	start := time.Now()
	b := beat{timeout: 20 * time.Second, round: start, reach: start}
	for _, step := range []struct {
		after seconds
		owns  bool
		want  []duty
	}{{1.5, true, []duty{dutyPing}}, {3, false, nil}, {3.4, false, []duty{dutyPing}}, {3.5, false, nil}} {
		now := step.after.after(start)
		f := facts{owns: step.owns, half: time.Second, lastSent: start, proven: start, reach: start}
		if diff := cmp.Diff(step.want, b.due(now, f)); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", now.Sub(start), diff)
		}
	}
}
