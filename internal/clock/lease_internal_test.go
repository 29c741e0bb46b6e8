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

// What a trail keeps is bounded by the timeout, and not by time, whatever the session does. What a burst takes does not stay.
func TestTrailIsBounded(t *testing.T) {
	const timeout, roundTrip = 10 * time.Second, time.Millisecond
	for name, c := range map[string]struct {
		every time.Duration // from one frame to the next
		leads int           // one in so many goes through the leader
		most  int           // entries
	}{
		"idle":             {timeout / 6, 2, 20},
		"reads":            {50 * time.Millisecond, 66, 700},
		"reads and writes": {500 * time.Millisecond, 6, 100},
		"holds":            {timeout / 20, 4, 60},
		"writes much":      {20 * time.Millisecond, 1, 600},
		"a burst":          {50 * time.Microsecond, 1, 600},
	} {
		start := time.Now()
		tr, sent := trail{half: timeout / 4}, start
		tr.begin(start, start.Add(roundTrip), timeout)
		room := func() int { return cap(tr.frames.all) + cap(tr.through.all) }
		goesOn := func(n, leads int, every time.Duration, most int) {
			t.Helper()
			for i := range n {
				sent = sent.Add(every)
				tr.answered(sent, sent.Add(roundTrip), i%leads == 0)
				if age := sent.Sub(tr.proof(sent.Add(roundTrip))); age > timeout && sent.Sub(start) > timeout {
					t.Fatalf("%s: after %v the proof is %v old", name, sent.Sub(start), age)
				}
				if room() > most && i > 40 {
					t.Fatalf("%s: after %v there is room for %d entries, want %d at most", name, sent.Sub(start), room(), most)
				}
			}
		}
		goesOn(longtest.Pick(50_000, 1_000_000), c.leads, c.every, 4*c.most)
		goesOn(100, 2, timeout/6, 1<<20)
		if room() > 4*historyRoom {
			t.Errorf("%s: room for %d entries after it", name, room())
		}
	}
}

// What answers show. A follower can give some of them alone.
func TestShows(t *testing.T) {
	codes := []int32{codec.CodeOK, codec.CodeNoNode, codec.CodeNodeExists, codec.CodeBadVersion, codec.CodeNotEmpty,
		codec.CodeNoAuth, codec.CodeInvalidACL, codec.CodeThrottled, codec.CodeNotReadOnly, codec.CodeSessionExpired,
		codec.CodeSessionMoved, codec.CodeUnimplemented, codec.CodeConnectionLoss, codec.CodeRuntimeInconsistency, codec.CodeBadArguments, 1}
	const agreed = 5 // of codes, those first
	for op, want := range map[int32]evidence{
		codec.OpSync: evidenceLeader, codec.OpCreate: evidenceQuorum, codec.OpCreate2: evidenceQuorum,
		codec.OpCreateContainer: evidenceQuorum, codec.OpCreateTTL: evidenceQuorum, codec.OpDelete: evidenceQuorum,
		codec.OpSetData: evidenceQuorum, codec.OpSetACL: evidenceQuorum, codec.OpMulti: evidenceQuorum,
		codec.OpPing: evidenceNone, codec.OpExists: evidenceNone, codec.OpGetData: evidenceNone, codec.OpGetChildren2: evidenceNone,
		codec.OpSetWatches: evidenceNone, codec.OpClose: evidenceNone, codec.OpAuth: evidenceNone, codec.OpMultiRead: evidenceNone,
	} {
		for i, code := range codes {
			got, expect := shows(op, code), want
			if i >= agreed || op == codec.OpSync && code != codec.CodeOK {
				expect = evidenceNone
			}
			if got != expect {
				t.Errorf("op %d, code %d: %v, want %v", op, code, got, expect)
			}
		}
	}
}

// What a write proves is settled when it is sent. It counts neither from its own sending nor from its answer, which may take
// long: see lease.go. Half a tick is 1 s.
func TestAnswerProvesWhatItsRequestDid(t *testing.T) {
	hello := time.Now()
	at := func(s seconds) time.Time { return s.after(hello) }
	var l Link
	l.Begin(hello, at(0.1), 10*time.Second, time.Second, true)
	passes := func(op, code int32, sent seconds) { l.Takes(l.Sends(1, op, at(sent)), code, at(sent+0.1)) }
	passes(codec.OpPing, codec.CodeOK, 1)
	passes(codec.OpPing, codec.CodeOK, 1.3)
	passes(codec.OpSync, codec.CodeOK, 2.2)
	passes(codec.OpGetData, codec.CodeOK, 2.5) // neither counts as a request through the leader
	passes(codec.OpCreate, codec.CodeNoAuth, 2.7)
	write := l.Sends(2, codec.OpDelete, at(3))
	passes(codec.OpPing, codec.CodeOK, 4)
	a, byLeader, _ := l.Takes(write, codec.CodeNoNode, at(8))
	if !byLeader || !a.Quorum || !a.Sent.Equal(at(3)) || !a.Touched.Equal(at(1)) {
		t.Errorf("by the leader: %v; of a quorum: %v; sent at %v, touched at %v: want 3 s and 1 s",
			byLeader, a.Quorum, a.Sent.Sub(hello), a.Touched.Sub(hello))
	}
}
