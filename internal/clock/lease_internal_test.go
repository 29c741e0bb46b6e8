package clock

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

func TestClock(t *testing.T) {
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d * time.Second) }
	for _, c := range []struct {
		name          string
		proven, heard []time.Duration // seconds after the start
		owns          bool
		now, want     time.Duration
	}{
		{"fresh", nil, nil, true, 0, 9},
		{"from what was proven", []time.Duration{2}, nil, true, 5, 6},
		{"nothing for as long as the lease", []time.Duration{2}, nil, true, 11, 0},
		{"longer", []time.Duration{2}, nil, true, 13, -2},
		{"the latest counts", []time.Duration{2, 4}, nil, true, 5, 8},
		{"in whatever order the answers come", []time.Duration{4, 2}, nil, true, 5, 8},
		{"what a leader alone has answered is no proof", []time.Duration{2}, []time.Duration{4}, true, 5, 6},
		{"but will do for who owns nothing", []time.Duration{2}, []time.Duration{4}, false, 5, 8},
		{"as a proof does", []time.Duration{4}, []time.Duration{2}, false, 5, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := New(start)
			k.SetLease(9 * time.Second)
			for _, d := range c.proven {
				k.Prove(at(d))
			}
			for _, d := range c.heard {
				k.Heard(at(d))
			}
			if got := k.Remaining(at(c.now), c.owns); got != c.want*time.Second {
				t.Errorf("remaining %v, want %v", got, c.want*time.Second)
			}
		})
	}
}

func TestClockConcurrentSafe(t *testing.T) {
	start := time.Now()
	k := New(start)
	synctest.Test(t, func(t *testing.T) {
		for i := range 50 {
			go k.Prove(start.Add(time.Duration(i) * time.Second))
			go k.Heard(start.Add(time.Duration(i+1) * time.Second))
		}
		synctest.Wait()
	})
	if got := k.Proven().Sub(start); got != 49*time.Second {
		t.Errorf("proven is %v after the start, want 49s", got)
	}
	if got := k.Latest().Sub(start); got != 50*time.Second {
		t.Errorf("the latest is %v after the start, want 50s", got)
	}
}

func TestMargin(t *testing.T) {
	const second, ms = time.Second, time.Millisecond
	for _, c := range []struct {
		configured, timeout, half, want time.Duration
		ok                              bool
	}{
		{0, 10 * second, second, second, true},
		{0, 10 * second, 2500 * ms, second, true},
		{0, 600 * ms, 150 * ms, 60 * ms, true},
		{0, 400 * ms, 100 * ms, 40 * ms, false}, // the heartbeats need more
		{0, 400 * ms, 10 * ms, 40 * ms, true},   // but not with ticks of 20 ms
		{2 * second, 10 * second, second, 2 * second, true},
		{4 * second, 10 * second, second, 4 * second, true},
		{5 * second, 10 * second, second, 4 * second, true}, // half a timeout, a gap, a look and two fiftieths are needed
		{9 * second, 10 * second, second, 4 * second, true},
		{5 * second, 10 * second, 2500 * ms, 3950 * ms, true}, // h, a gap, a round, two pings and two fiftieths
		{2 * second, 4 * second, second, 1520 * ms, true},
		{2 * second, 200 * ms, 50 * ms, 20 * ms, false}, // never less than the default
		{10 * ms, 200 * ms, 50 * ms, 10 * ms, false},
		{10 * ms, 4 * second, second, 10 * ms, true},
		{0, 10 * second, 6 * second, second, false}, // a tick of 12 s
	} {
		got, ok := Margin(c.configured, c.timeout, c.half)
		if ok != c.ok || got != c.want {
			t.Errorf("Margin(%v, %v, %v) = %v, %v, want %v, %v", c.configured, c.timeout, c.half, got, ok, c.want, c.ok)
		}
	}
}

// seconds after the handshake.
type seconds float64

func (s seconds) after(t time.Time) time.Time {
	return t.Add(time.Duration(float64(s) * float64(time.Second)))
}

// What a write proves, by the formula: half a tick is 1 s, and the gap 0.1 s.
func TestProof(t *testing.T) {
	hello := time.Now()
	type exchange struct {
		sent, answered seconds
		leader         bool
	}
	for _, c := range []struct {
		name      string
		exchanges []exchange
		now       seconds
		want      seconds
	}{
		{"nothing but the handshake", nil, 5, 0},
		{"pings prove nothing alone", []exchange{{3, 3.1, false}}, 5, 0},
		{"a ping, half a tick later a sync, a gap later the write",
			[]exchange{{2, 2.1, false}, {3.1, 3.2, true}}, 3.3, 2},
		{"the write too soon after the sync",
			[]exchange{{2, 2.1, false}, {3.1, 3.2, true}}, 3.29, 0},
		{"the sync too soon after the ping",
			[]exchange{{2, 2.1, false}, {3.09, 3.2, true}}, 4, 0},
		{"a ping whose answer took long",
			[]exchange{{1, 1.1, false}, {2, 2.9, false}, {3.1, 3.2, true}}, 4, 1},
		{"a ping in flight",
			[]exchange{{1, 1.1, false}, {2, 9, false}, {3.1, 9.1, true}}, 4, 0},
		{"a sync whose answer took long: it counts from its sending",
			[]exchange{{1, 1.1, false}, {2, 2.1, false}, {3, 3.1, false}, {3.2, 6, true}}, 6.1, 2},
		{"requests through the leader are frames too",
			[]exchange{{1, 1.1, true}, {3, 3.1, true}}, 3.2, 1},
		{"the latest of each",
			[]exchange{{1, 1.1, true}, {3, 3.1, true}, {5, 5.1, false}, {6.5, 6.6, true}}, 7, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := trail{half: time.Second}
			tr.begin(hello, hello.Add(10*time.Millisecond), 10*time.Second)
			for _, e := range c.exchanges {
				if e.answered > c.now {
					continue // not there yet
				}
				tr.answered(e.sent.after(hello), e.answered.after(hello), e.leader)
			}
			if got := tr.proof(c.now.after(hello)); !got.Equal(c.want.after(hello)) {
				t.Errorf("touched at %v, want %v", got.Sub(hello).Seconds(), c.want)
			}
		})
	}
}

// The clock of the leader may be slow by a fiftieth, and then its half tick takes longer. A ping that was
// answered just half a tick before the sync may have come too late for the list.
func TestProofOfSlowLeader(t *testing.T) {
	for after, counts := range map[time.Duration]bool{1019 * time.Millisecond: false, 1020 * time.Millisecond: true} {
		synctest.Test(t, func(t *testing.T) {
			var l Link
			hello := Now()
			l.Begin(hello, hello, 10*time.Second, time.Second, true)
			ping := hello.Add(time.Second)
			l.trail.answered(ping, ping, false)
			l.trail.answered(ping.Add(after), ping.Add(after), true)
			write := l.Sends(1, codec.OpMulti, hello.Add(5*time.Second))
			if got := write.proof.Equal(ping); got != counts {
				t.Errorf("a sync %v after the ping: the write proves the ping: %v", after, got)
			}
		})
	}
}

// The proof never says more than a model of the servers knows, whatever the requests and however
// slow the answers. In this model the leader pings as late as it may. The proof needs little
// memory.
func TestProofNeverLies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const half = time.Second
		start := time.Now()
		tr := trail{half: half}
		tr.begin(start, start.Add(time.Millisecond), 10*time.Second)
		now := start.Add(time.Millisecond)
		type leaderRequest struct{ sent, answered time.Time }
		var all []leaderRequest
		type frame struct{ sent, answered time.Time }
		frames := []frame{{start, now}}
		for range rapid.IntRange(1, 200).Draw(t, "exchanges") {
			sent := now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "pause")) * time.Millisecond)
			now = sent.Add(time.Duration(rapid.IntRange(1, 900).Draw(t, "round trip")) * time.Millisecond)
			frames = append(frames, frame{sent, now})
			byLeader := rapid.Bool().Draw(t, "through the leader")
			tr.answered(sent, now, byLeader)
			if byLeader {
				all = append(all, leaderRequest{sent, now})
			}
			got := tr.proof(now)
			// The last list for certain was made h before the latest request through the
			// leader that is a gap old, and has all that was answered by then.
			want := start
			for _, r := range all {
				if r.answered.After(now.Add(-gap)) {
					continue
				}
				for _, f := range frames {
					if !f.answered.After(r.sent.Add(-half)) && f.sent.After(want) {
						want = f.sent
					}
				}
			}
			if got.After(want) {
				t.Fatalf("at %v it says %v, the model %v", now.Sub(start), got.Sub(start), want.Sub(start))
			}
			if want.Sub(got) > 2*tr.frames.res+2*time.Second {
				t.Fatalf("at %v it says %v, the model %v: too cautious", now.Sub(start), got.Sub(start), want.Sub(start))
			}
		}
		if n := cap(tr.frames.all) + cap(tr.through.all); n > 400 {
			t.Fatalf("room for %d exchanges", n)
		}
	})
}

// What a trail keeps is bounded by the timeout, and not by time: whatever the session does, after a month
// it is as much as after an hour, and the room for it is too. Only a burst may need more, and that does
// not stay.
func TestTrailIsBounded(t *testing.T) {
	const timeout, roundTrip = 10 * time.Second, time.Millisecond
	type habit struct {
		every, leads, writes time.Duration // how often a frame, a request through the leader and a write is sent; 0: never
		most                 int           // entries within an hour
		days                 int
	}
	for name, h := range map[string]habit{
		"idle":             {every: timeout / 6, leads: timeout / 3, most: 20, days: 30},
		"reads":            {every: 50 * time.Millisecond, leads: timeout / 3, most: 700, days: 1},
		"reads and writes": {every: 500 * time.Millisecond, leads: timeout / 3, writes: time.Minute, most: 100, days: 30},
		"holds":            {every: timeout / 20, leads: timeout / 5, writes: timeout / 5, most: 60, days: 30},
		"writes much":      {every: 20 * time.Millisecond, leads: 20 * time.Millisecond, writes: 20 * time.Millisecond, most: 600, days: 1},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			tr := trail{half: timeout / 4}
			tr.begin(start, start.Add(roundTrip), timeout)
			due := func(n int, every time.Duration) bool {
				return every > 0 && int64(n)%int64(every/h.every) == 0
			}
			size := func() (entries, room int) {
				return len(tr.frames.all) + len(tr.through.all), cap(tr.frames.all) + cap(tr.through.all)
			}
			most, mostRoom := 0, 0 // within the hour, but for its first minute
			n := 1
			run := func(until time.Duration, each func()) {
				for ; time.Duration(n)*h.every < until; n++ {
					sent := start.Add(time.Duration(n) * h.every)
					if due(n, h.writes) {
						if age := sent.Sub(tr.proof(sent)); age > timeout && n > 1000 {
							t.Fatalf("after %v the proof is %v old", sent.Sub(start), age)
						}
					}
					tr.answered(sent, sent.Add(roundTrip), due(n, h.leads) || due(n, h.writes))
					each()
				}
			}
			run(time.Hour, func() {
				entries, room := size()
				most, mostRoom = max(most, entries), max(mostRoom, room)
			})
			if most > h.most || mostRoom > 4*h.most {
				t.Fatalf("within an hour %d entries, and room for %d", most, mostRoom)
			}
			run(time.Duration(longtest.Pick(h.days/10+1, h.days))*24*time.Hour, func() {
				if entries, room := size(); entries > most || room > mostRoom {
					t.Fatalf("after %v it has %d entries, and room for %d: %d and %d within an hour",
						time.Duration(n)*h.every, entries, room, most, mostRoom)
				}
			})
		})
	}
}

// Thousands of answers a second take no more memory than a few, and what they took does not stay.
func TestHistoryIsBounded(t *testing.T) {
	tr := trail{half: 2500 * time.Millisecond}
	now := time.Now()
	tr.begin(now, now, 10*time.Second)
	for range 1_000_000 {
		now = now.Add(50 * time.Microsecond)
		tr.answered(now, now.Add(time.Millisecond), true)
		if got := now.Sub(tr.proof(now.Add(time.Millisecond))); got > 3*time.Second && now.Sub(tr.hello) > 4*time.Second {
			t.Fatalf("the proof is %v old", got)
		}
	}
	if n := cap(tr.frames.all) + cap(tr.through.all); n > 1000 {
		t.Errorf("room for %d exchanges", n)
	}
	for range 20 {
		now = now.Add(2 * time.Second)
		tr.answered(now, now.Add(time.Millisecond), true)
	}
	if n := cap(tr.frames.all) + cap(tr.through.all); n > 4*historyRoom {
		t.Errorf("room for %d exchanges after a burst", n)
	}
}
