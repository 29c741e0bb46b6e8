package wire

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Heartbeats go out while none is answered, and a round's write follows its sync.
func TestBeatsAreNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.events.owns = true
		b.greet(t) // a timeout of 6 s: a ping each 0.3 s, a round each 1.2 s
		if diff := cmp.Diff([]int32{codec.OpMulti}, b.beaten()); diff != "" {
			t.Errorf("with the greeting (-want +got):\n%s", diff)
		}
		time.Sleep(8 * time.Second)
		count := map[int32]int{}
		for _, op := range b.beaten() {
			count[op]++
		}
		if count[codec.OpSync] < 3 || count[codec.OpPing] < 10 || count[codec.OpMulti] != 0 {
			t.Errorf("%v in 8 s without an answer", count)
		}
	})
}

// gap is between the answer to a sync and the write of its round: see package clock.
const gap = 100 * time.Millisecond

func TestRoundIsSyncThenWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.events.owns = true
		b.greet(t)
		b.answer(t, replyFrame(firstXid-1, 0, bodies[codec.OpMulti]...))
		b.beaten()
		var xid int32
		for xid == 0 {
			switch f := <-b.got; f[1] {
			case codec.OpSync:
				xid = f[0]
			case codec.OpPing:
				b.answer(t, replyFrame(codec.XidPing, 0))
			}
		}
		b.answer(t, replyFrame(xid, 0, bodies[codec.OpSync]...))
		answered := time.Now()
		for f := range b.got {
			if f[1] == codec.OpMulti {
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
		b.ask(codec.OpExists)
		var f [2]int32
		for f = <-b.got; f[1] == codec.OpExists; f = <-b.got {
			b.answer(t, replyFrame(f[0], codec.CodeNoNode))
		}
		want := []int32{codec.OpSync, codec.OpPing}[i%2]
		since := time.Since(last).Round(10 * time.Millisecond)
		if f[1] != want || i >= 4 && (since < least || since > most) {
			t.Fatalf("heartbeat %d is a request of kind %d after %v, want %d after %v to %v", i, f[1], since, want, least, most)
		}
		last = time.Now()
		b.answer(t, replyFrame(f[0], codec.CodeOK, bodies[f[1]]...))
	}
}
