package wire

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// TestWindowBytes bounds the bytes in flight, and of a write, unless one call is longer.
func TestWindowBytes(t *testing.T) {
	path := func(size int) string { return "/" + strings.Repeat("x", size-17) } // the frame has so many bytes
	for _, c := range []struct {
		size, flying, written int // calls in flight, and the bytes of a write
	}{
		{100, mostCalls, 100 * mostCalls},
		{1 << 10, mostBytes >> 10, mostWrite},
		{10 << 10, mostBytes / (10 << 10), 10 << 10},
		{mostWrite + 1, mostBytes / (mostWrite + 1), mostWrite + 1},
		{1 << 20, 1, 1 << 20},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, nil)
			writes := &writeSizes{Conn: b.net}
			b.net = writes
			b.greet()
			var calls []*Call
			for range 2 * c.flying {
				one, _ := call(codec.OpExists, path(c.size))
				calls = append(calls, one)
			}
			b.Start(calls...)
			got := b.frames()
			if len(got) != c.flying {
				t.Errorf("%d calls of %d bytes in flight, want %d", len(got), c.size, c.flying)
			}
			if most := slices.Max(writes.sizes); most != min(c.written, mostWrite/c.size*c.size) && most != c.size {
				t.Errorf("%d bytes are written at once in calls of %d, want %d", most, c.size, c.written)
			}
			b.say(replyFrame(codec.Xid(got[0]), codec.CodeNoNode))
			if n := len(b.frames()); n != 1 {
				t.Errorf("%d calls of %d bytes leave after an answer", n, c.size)
			}
			if n := cap(b.writing); n > 2*mostWrite {
				t.Errorf("a buffer of %d bytes is kept", n)
			}
		})
	}
}

// writeSizes notes the sizes of writes.
type writeSizes struct {
	net.Conn
	sizes []int
}

func (c *writeSizes) Write(b []byte) (int, error) {
	c.sizes = append(c.sizes, len(b))
	return c.Conn.Write(b)
}

// full returns a bench whose window is full, and the frames in flight.
func full(t *testing.T) (*bench, [][]byte) {
	b := newBench(t, nil)
	b.greet()
	b.number = math.MaxInt32 - mostCalls/2
	for range mostCalls {
		b.ask(codec.OpExists, "/full")
	}
	inFlight := b.frames()
	if slices.ContainsFunc(inFlight, func(f []byte) bool { return codec.Xid(f) <= 0 }) {
		t.Error("numbers are positive, and begin again at their end")
	}
	return b, inFlight
}

// drain answers one frame in flight after the other until nothing more leaves, and returns the paths of what has left.
func (b *bench) drain(inFlight [][]byte) (paths []string) {
	for len(inFlight) > 0 {
		b.say(answerTo(inFlight[0]))
		left := b.frames()
		inFlight = append(inFlight[1:], left...)
		for _, f := range left {
			paths = append(paths, string(codec.Path(f)))
		}
	}
	return paths
}

// TestFirst lets deletes of own nodes leave ahead of all other calls, in order.
func TestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, inFlight := full(t)
		for i, first := range []bool{false, true, false, true} {
			c, _ := call(codec.OpDelete, fmt.Sprintf("/%d", i))
			c.First = first
			b.Start(c)
		}
		if diff := cmp.Diff([]string{"/1", "/3", "/0", "/2"}, b.drain(inFlight)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestSharedListing lets callers share a listing that waits. It leaves behind the creates of all of them, so that each sees
// its node, and its answer is decoded once.
func TestSharedListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, inFlight := full(t)
		const callers = 2*mostShare + 3
		var replies []chan Reply
		for i := range callers {
			create, _ := call(codec.OpCreate, fmt.Sprintf("/a/%d", i))
			list, reply := call(codec.OpGetChildren2, "/a")
			b.Start(create, list)
			replies = append(replies, reply)
		}
		b.ask(codec.OpGetChildren2, "/b") // another directory
		seen, lists := 0, 0
		for _, p := range b.drain(inFlight) {
			switch {
			case p == "/a":
				lists++
				if want := min(callers, lists*mostShare); seen != want {
					t.Errorf("listing %d leaves behind %d creates, want %d", lists, seen, want)
				}
			case p != "/b":
				seen++
			}
		}
		if lists != 3 {
			t.Errorf("%d listings for %d callers, want 3", lists, callers)
		}
		first, second := ended(replies[0]), ended(replies[1])
		if len(first.Names) != 2 || &first.Names[0] != &second.Names[0] {
			t.Errorf("two that share a listing got %v and %v, and not the same", first.Names, second.Names)
		}
		for i, reply := range replies[2:] {
			if r := ended(reply); r == nil || len(r.Names) != 2 {
				t.Errorf("caller %d got %+v", i+2, r)
			}
		}
		for range 2 { // one that has left is not shared: it may have been answered already
			b.ask(codec.OpGetChildren2, "/a")
		}
		if n := len(b.frames()); n != 2 {
			t.Errorf("%d listings, want 2", n)
		}
	})
}

// TestWithdraw sees that a call which is withdrawn before it leaves never leaves, and does not end. A listing stays as long
// as somebody wants it.
func TestWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, inFlight := full(t)
		start := func(op int32, path string) (*Call, chan Reply) {
			c, reply := call(op, path)
			b.Start(c)
			return c, reply
		}
		one, r1 := start(codec.OpCreate, "/1")
		start(codec.OpCreate, "/2")
		alone, r3 := start(codec.OpGetChildren2, "/alone")
		shared, r4 := start(codec.OpGetChildren2, "/shared")
		_, r5 := start(codec.OpGetChildren2, "/shared")
		for i, c := range []*Call{one, alone, shared} {
			if !b.Withdraw(c) || b.Withdraw(c) {
				t.Errorf("call %d: not withdrawn once", i)
			}
		}
		last, r6 := start(codec.OpGetChildren2, "/alone") // it does not join what is gone
		got := b.drain(inFlight)
		if diff := cmp.Diff([]string{"/2", "/shared", "/alone"}, got); diff != "" {
			t.Errorf("left (-want +got):\n%s", diff)
		}
		if ended(r1) != nil || ended(r3) != nil || ended(r4) != nil || ended(r5) == nil || ended(r6) == nil {
			t.Error("another call has ended than those that have left")
		}
		if b.Withdraw(last) {
			t.Error("a call that has left is withdrawn")
		}
		b.Cut(net.ErrClosed)
		b.Forsake()
		if late, r := start(codec.OpCreate, "/late"); b.Withdraw(late) || ended(r) == nil {
			t.Error("a call that was not sent is withdrawn, and has not ended")
		}
	})
}

// TestWithdrawnDoNotPileUp keeps nothing of calls that are withdrawn while nothing leaves, and nothing of a burst once it is
// over.
func TestWithdrawnDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, inFlight := full(t)
		b.ask(codec.OpCreate, "/stays")
		for range 100_000 {
			c, _ := call(codec.OpExists, "/a")
			b.Start(c)
			if !b.Withdraw(c) {
				t.Fatal("not withdrawn")
			}
		}
		for range 10 * mostShare { // a listing that moves
			b.ask(codec.OpGetChildren2, "/a")
		}
		if n := b.waiting.others.Len(); n != 11 {
			t.Errorf("%d entries of 11 calls that wait", n)
		}
		var burst []*Call
		for range 10_000 {
			c, _ := call(codec.OpExists, "/a")
			burst = append(burst, c)
		}
		b.Start(burst...)
		if got := b.drain(inFlight); len(got) != 10_000+11 || got[0] != "/stays" {
			t.Errorf("%d calls have left", len(got))
		}
		if w := &b.waiting; w.others.Len() > 0 || len(w.listings) > 0 || cap(b.flight) > 8*mostCalls {
			t.Errorf("kept: %d, %d listings, %d in flight", w.others.Len(), len(w.listings), cap(b.flight))
		}
	})
}
