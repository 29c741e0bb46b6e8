package outbox

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// fill lets calls out until there is no room, and returns how many left.
func (w *window) fill(now time.Time, load int) (n int) {
	for w.room(load) {
		w.sent(now, load)
		n++
	}
	return n
}

// The window lets out so many calls, and one only when they are long.
func TestWindowRoom(t *testing.T) {
	now := time.Now()
	for _, c := range []struct{ load, want int }{
		{100, firstCalls},
		{firstBytes / firstCalls, firstCalls},
		{firstBytes/firstCalls + 1, firstCalls - 1},
		{firstBytes, 1},
		{firstBytes + 1, 1},
		{10 * mostBytes, 1},
	} {
		var w window
		w.begin(10 * time.Second)
		if n := w.fill(now, c.load); n != c.want {
			t.Errorf("%d calls of %d bytes leave, want %d", n, c.load, c.want)
		}
	}
}

// run lets a network and a server carry so many bytes and calls in a second for a while, and returns the most that were in
// flight in the second half of that time, and the longest answer.
func (w *window) run(now time.Time, load, bytesPerSecond, callsPerSecond int, latency time.Duration) (calls, bytes int, longest time.Duration) {
	type flying struct {
		sent, answered time.Time
		alone          bool
	}
	var all []flying
	free := now
	each := max(time.Second*time.Duration(load)/time.Duration(bytesPerSecond), time.Second/time.Duration(callsPerSecond))
	for start := now; now.Sub(start) < time.Minute; {
		if len(all) > 0 {
			w.look(now, all[0].sent)
		}
		for w.room(load) {
			if free.Before(now) {
				free = now
			}
			free = free.Add(each)
			all = append(all, flying{now, free.Add(latency), w.sent(now, load)})
		}
		if now.Sub(start) > 30*time.Second {
			calls, bytes = max(calls, w.flying), max(bytes, w.load)
			longest = max(longest, all[0].answered.Sub(all[0].sent))
		}
		one := all[0]
		all, now = all[1:], one.answered
		w.answered(now, one.sent, load, one.alone)
	}
	return calls, bytes, longest
}

// The window follows what the network and the server carry. With a timeout of 10 s, no call waits for much longer than
// half a second in the kernel, on the network and in the server.
func TestWindowFollows(t *testing.T) {
	const timeout = 10 * time.Second
	for _, c := range []struct {
		name              string
		load, bytes, rate int
		latency           time.Duration
		least             int // calls in flight
	}{
		{"a fast network", 200, 1 << 30, 20_000, time.Millisecond, mostCalls},
		{"large calls on a fast network", 200 << 10, 1 << 30, 20_000, time.Millisecond, 5},
		{"100 kB/s", 200, 100_000, 20_000, 20 * time.Millisecond, mostCalls},
		{"large calls at 1 MB/s", 200 << 10, 1 << 20, 20_000, 20 * time.Millisecond, 1},
		{"large calls at 100 kB/s", 200 << 10, 100_000, 20_000, 20 * time.Millisecond, 1},
		{"a server that answers 10 calls a second", 200, 1 << 30, 10, time.Millisecond, 1},
		{"a long way", 200, 1 << 30, 20_000, 900 * time.Millisecond, mostCalls},
	} {
		var w window
		w.begin(timeout)
		calls, bytes, longest := w.run(time.Now(), c.load, c.bytes, c.rate, c.latency)
		most := c.latency + 2*timeout/windowPerTimeout + time.Second*time.Duration(c.load)/time.Duration(c.bytes)
		t.Logf("%s: %d calls and %d bytes in flight, answers after at most %v", c.name, calls, bytes, longest)
		if calls < c.least || calls > mostCalls || bytes > mostBytes || longest > most {
			t.Errorf("%s: %d calls, want %d to %d; %d bytes, want at most %d; answers after %v, want at most %v",
				c.name, calls, c.least, mostCalls, bytes, mostBytes, longest, most)
		}
	}
}

// A server that stops answering gets ever fewer calls, down to one. Once it answers again, it gets more.
func TestWindowNarrows(t *testing.T) {
	const timeout = 10 * time.Second
	var w window
	w.begin(timeout)
	w.run(time.Now(), 200, 1<<30, 20_000, time.Millisecond)
	if w.calls != mostCalls {
		t.Fatalf("%d calls before", w.calls)
	}
	now := time.Now().Add(time.Hour)
	if w.flying == 0 {
		w.sent(now, 200)
	}
	began := now
	for _, want := range []int{64, 32, 16, 8, 4, 2, 1, 1} {
		w.look(now, began)
		if w.calls != want {
			t.Errorf("after %v the window has %d calls, want %d", now.Sub(began), w.calls, want)
		}
		now = now.Add(timeout/windowPerTimeout + time.Second/10)
	}
	if w.bytes != leastBytes {
		t.Errorf("the window has %d bytes, want %d", w.bytes, leastBytes)
	}
	for range w.flying {
		w.answered(now, now, 200, false)
	}
	w.run(now.Add(time.Second), 200, 1<<30, 20_000, time.Millisecond)
	if w.calls != mostCalls {
		t.Errorf("the window has %d calls after the server has answered for a minute", w.calls)
	}
}

// After a timeout without calls, the window is as narrow as at first: the network may be another.
func TestWindowForgets(t *testing.T) {
	var w window
	now := time.Now()
	w.begin(10 * time.Second)
	w.run(now, 200, 1<<30, 20_000, time.Millisecond)
	for range w.flying {
		w.answered(now.Add(time.Minute), now.Add(time.Minute), 200, false)
	}
	if w.sent(now.Add(time.Minute+10*time.Second), 200); w.calls != mostCalls {
		t.Errorf("%d calls after exactly a timeout", w.calls)
	}
	w.answered(now.Add(2*time.Minute), now.Add(2*time.Minute), 200, false)
	if w.sent(now.Add(2*time.Minute+10*time.Second+1), 200); w.calls != firstCalls {
		t.Errorf("%d calls after more than a timeout", w.calls)
	}
}

func listFrame(path string) []byte { return callFrame(codec.OpGetChildren2, path) }

// A list of children is expected to be as long as the last one of that directory. One list of an unknown directory is
// in flight at a time. A connection remembers a bounded number of lengths.
func TestExpected(t *testing.T) {
	var e expected
	check := func(when string, frame []byte, want int, may bool) {
		t.Helper()
		if n, ok := e.answer(frame, e.readOf(frame)); n != want || ok != may {
			t.Errorf("%s: %d bytes, may leave: %v; want %d, %v", when, n, ok, want, may)
		}
	}
	a, b := listFrame("/a"), listFrame("/b")
	get, del := callFrame(codec.OpGetData, "/a"), callFrame(codec.OpDelete, "/a")
	check("nothing is known", a, guessed, true)
	e.sent(a, e.readOf(a))
	check("one is in flight", a, guessed, false)
	check("of another directory", b, guessed, true)
	check("data", get, guessed, true)
	check("a delete", del, 0, true)
	e.answered(e.readOf(a), 5000)
	check("after the answer", a, 5000, true)
	e.answered(e.readOf(a), 0)
	check("after an answer without children", a, 0, true)
	e.answered(e.readOf(get), guessed)
	check("after short data", get, guessed, true)
	e.answered(e.readOf(get), guessed+1)
	check("after long data", get, guessed+1, true)
	for i := range 3 * mostKnown {
		f := listFrame(string(binary.BigEndian.AppendUint32([]byte("/d"), uint32(i))))
		e.sent(f, e.readOf(f))
		e.answered(e.readOf(f), 100)
	}
	if len(e.known) > mostKnown || len(e.first) > 0 {
		t.Errorf("%d lengths are remembered, and %d lists are in flight", len(e.known), len(e.first))
	}
}

// A request counts as refused when three connections in a row were lost with it, or with a longer one. An answer to one
// as long clears it.
func TestRefusals(t *testing.T) {
	const lost, answered = true, false
	type step struct {
		lost bool
		size int
	}
	for _, c := range []struct {
		name  string
		steps []step
		want  bool // after the last step, which is a loss
	}{
		{"two losses", []step{{lost, 60_000}, {lost, 60_000}}, false},
		{"three losses", []step{{lost, 60_000}, {lost, 60_000}, {lost, 60_000}}, true},
		{"with longer ones", []step{{lost, 60_000}, {lost, 61_000}, {lost, 60_000}}, true},
		{"with short ones in between", []step{{lost, 60_000}, {lost, 60_000}, {lost, 100}, {lost, 60_000}}, true},
		{"of a shorter one at last", []step{{lost, 60_000}, {lost, 60_000}, {lost, 5_000}}, false},
		{"short ones", []step{{lost, SuspiciousLength - 1}, {lost, SuspiciousLength - 1}, {lost, SuspiciousLength - 1}}, false},
		{"as short as can be", []step{{lost, SuspiciousLength}, {lost, SuspiciousLength}, {lost, SuspiciousLength}}, true},
		{"with an answer to one as long", []step{{lost, 60_000}, {lost, 60_000}, {answered, 60_000}, {lost, 60_000}}, false},
		{"with an answer to a shorter one", []step{{lost, 60_000}, {lost, 60_000}, {answered, 59_999}, {lost, 60_000}}, true},
	} {
		var r Refusals
		refused := false
		for _, s := range c.steps {
			if s.lost {
				refused = r.lost(s.size)(s.size) != nil
			} else {
				r.answered(s.size)
			}
		}
		if refused != c.want {
			t.Errorf("%s: refused: %v, want %v", c.name, refused, c.want)
		}
	}
	var r Refusals
	for range refusedAfter - 1 {
		r.lost(60_000)
	}
	why := r.lost(60_000)
	if why(59_999) != nil || why(60_000) == nil || why(70_000) == nil {
		t.Errorf("after losses with 60000 bytes: %v, %v, %v", why(59_999), why(60_000), why(70_000))
	}
}
