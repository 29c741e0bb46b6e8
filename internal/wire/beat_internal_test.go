package wire

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Which heartbeats are due when. With a timeout of 20 s there is a ping each second, a round each 4 s,
// and a sync of an idle session each 6.67 s, with a ping halfway.
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
		b := newBench(t, false)
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
		b := newBench(t, false)
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

// An idle session sends as many pings as zk.Conn would, and as many syncs. The pings are halfway between the syncs, whenever
// zk.Conn pings and whatever the user sends.
func TestIdleBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, false)
		b.greet(t)
		last := time.Now()
		for i := range 60 {
			time.Sleep(300 * time.Millisecond)
			b.send(t, XidPing, OpPing)
			b.send(t, int32(i), OpExists)
			var f [2]int32
			for f = <-b.got; f[1] == OpExists; f = <-b.got {
				b.answer(t, replyFrame(f[0], CodeNoNode))
			}
			want := []int32{OpPing, OpSync}[i%2]
			if since := time.Since(last).Round(10 * time.Millisecond); f[1] != want || since != time.Second {
				t.Fatalf("heartbeat %d is a request of kind %d after %v, want %d after 1 s", i, f[1], since, want)
			}
			last = time.Now()
			b.answer(t, replyFrame(f[0], CodeOK, bodies[f[1]]...))
		}
	})
}

// After a sync, one ping is enough for a session that owns nothing.
func TestIdlePingsOnce(t *testing.T) {
	start := time.Now()
	b := beat{timeout: 20 * time.Second, round: start}
	for i, want := range [][]duty{{dutyPing}, nil, nil, {dutySync}, nil, {dutyPing}} {
		now := start.Add(time.Duration(i) * time.Second).Add(4 * time.Second)
		if i == 5 {
			now = now.Add(2 * time.Second)
		}
		if diff := cmp.Diff(want, b.due(now, facts{half: time.Second})); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", now.Sub(start), diff)
		}
	}
}
