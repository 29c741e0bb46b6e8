package wire

import (
	"fmt"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// TestBeatsAreNotHeldBack sends heartbeats while none is answered.
func TestBeatsAreNotHeldBack(t *testing.T) {
	greeted(t, func(c *Config) { c.Owned.Store(1) }, func(t *testing.T, b *bench) {
		// a timeout of 6 s: a ping each 0.3 s, a round each 1.2 s
		if ops := b.ops(); len(ops) != 1 || ops[0] != codec.OpMulti {
			t.Errorf("%v with the greeting, want a write", ops)
		}
		time.Sleep(8 * time.Second)
		count := map[int32]int{}
		for _, op := range b.ops() {
			count[op]++
		}
		if count[codec.OpSync] < 3 || count[codec.OpPing] < 10 || count[codec.OpMulti] != 0 {
			t.Errorf("%v in 8 s without an answer", count)
		}
	})
}

// TestRoundIsSyncThenWrite sends the write of a round a gap after the answer to its sync.
func TestRoundIsSyncThenWrite(t *testing.T) {
	const gap = 100 * time.Millisecond // see package clock
	greeted(t, func(c *Config) { c.Owned.Store(1) }, func(t *testing.T, b *bench) {
		b.say(answerTo(b.next()))
		for op := int32(0); op != codec.OpSync; {
			f := <-b.got
			op = codec.Op(f)
			b.say(answerTo(f))
		}
		answered := time.Now()
		for codec.Op(<-b.got) != codec.OpMulti {
		}
		if d := time.Since(answered); d != gap {
			t.Errorf("the write came %v after the answer to the sync, want %v", d, gap)
		}
	})
}

// TestBeatsGoAhead writes heartbeats ahead of 8,192 calls that wait: each is behind the calls in flight only. The calls are
// reads, which prove nothing, and the server takes a millisecond for each.
func TestBeatsGoAhead(t *testing.T) {
	greeted(t, func(c *Config) { c.Owned.Store(1) }, func(t *testing.T, b *bench) {
		b.say(answerTo(b.next()))
		calls := make([]*Call, 8192)
		for i := range calls {
			calls[i], _ = call(codec.OpExists, fmt.Sprintf("/locks/%d", i))
			calls[i].First = true
		}
		b.Start(calls...)
		var last time.Time
		var most time.Duration
		beats := 0
		for answered := 0; answered < len(calls); {
			f := <-b.got
			if codec.Op(f) == codec.OpExists {
				answered++
				time.Sleep(time.Millisecond)
			} else {
				if beats++; beats > 1 {
					most = max(most, time.Since(last))
				}
				last = time.Now()
			}
			b.say(answerTo(f))
		}
		// A round begins each 1.2 s, which is the time from its write to the next sync. Each waits for the answers to 128 calls.
		if limit := (1200 + mostCalls) * time.Millisecond; most > limit || beats < 10 {
			t.Errorf("%d heartbeats; the longest time between two is %v, want %v at most", beats, most, limit)
		}
	})
}
