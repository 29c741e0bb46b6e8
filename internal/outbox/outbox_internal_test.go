package outbox

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// full is a burst whose window is full: a read waits for its answer.
func full(t *testing.T, window int) *burst {
	b := newBurst(t, window)
	for range window {
		b.want("first", "/first", codec.OpExists)
	}
	b.leave()
	return b
}

// answers answers the oldest call again and again, and returns what leaves then, call by call, until so many have left.
func (b *burst) answers(n int) (all []string) {
	for all = b.leave(); len(all) < n && len(b.sent) > 0; {
		b.reply(10, succeeds(b.sent[0]))
		all = append(all, b.leave()...)
	}
	return all
}

// succeeds returns the answer to a request that is carried out.
func succeeds(frame []byte) (r Reply) {
	if codec.Op(frame) == codec.OpCreate {
		r.Path = pathOf(frame)
	}
	if codec.Op(frame) != codec.OpMulti {
		return r
	}
	for _, part := range strings.Split(words(frame), " + ") {
		if path, ok := strings.CutPrefix(part, "create "); ok {
			r.Results = append(r.Results, codec.Result{Op: codec.OpCreate, Path: path})
		} else {
			r.Results = append(r.Results, codec.Result{Op: codec.OpDelete})
		}
	}
	return r
}

// Calls for one directory wait for those for another for a turn only, however many these are, and keep their order.
func TestDirectoriesTakeTurns(t *testing.T) {
	b := full(t, 1)
	for i := range 1000 {
		b.want("a", fmt.Sprintf("/a/%d-", i), codec.OpCreate)
	}
	b.want("b", "/b/0-", codec.OpCreate)
	b.want("b", "/b/1-", codec.OpCreate)
	b.want("c", "/c/0", codec.OpExists)
	b.check("in turn", b.answers(7), "create /a/0-", "create /b/0-", "exists /c/0", "create /a/1-", "create /b/1-",
		"create /a/2-", "create /a/3-")
	b.want("b", "/b/2-", codec.OpCreate)
	b.check("one that comes later", b.answers(2), "create /a/4-", "create /b/2-")
	b.batch("d", "/d/0", codec.OpDelete)
	b.check("a delete of a node of ours", b.answers(2), "delete /d/0", "create /a/5-")
}

// The same with creates that may leave together.
func TestDirectoriesTakeTurnsTogether(t *testing.T) {
	b := full(t, 1)
	for i := range 1000 {
		b.batch("a", fmt.Sprintf("/a/%d-", i), codec.OpCreate)
	}
	for i := range 3 {
		b.batch("b", fmt.Sprintf("/b/%d-", i), codec.OpCreate)
	}
	b.want("b", "/b", codec.OpGetChildren2)
	b.check("in turn", b.answers(5), "create /a/0- + create /b/0-", "create /a/1- + create /b/1-", "create /a/2- + create /b/2-",
		"list /b", "create /a/3-")
}

// While there is room, calls leave in the order in which they come.
func TestOrderWithRoom(t *testing.T) {
	b := newBurst(t, firstCalls)
	for i := range 3 {
		b.batch("a", fmt.Sprint("/a/", i), codec.OpCreate)
		b.batch("b", fmt.Sprint("/b/", i), codec.OpDelete)
		b.want("c", "/c", codec.OpGetChildren2)
		b.window.bytes = mostBytes
		b.expected.answered(b.expected.readOf(callFrame(codec.OpGetChildren2, "/c")), 2000)
	}
	b.check("at once", b.leave(), "create /a/0", "delete /b/0", "list /c", "create /a/1", "delete /b/1", "list /c",
		"create /a/2", "delete /b/2", "list /c")
}

// A call whose caller has given up never leaves, takes no room, and ends once.
func TestGivenUp(t *testing.T) {
	b := full(t, 1)
	b.expected.answered(b.expected.readOf(callFrame(codec.OpGetChildren2, "/a")), 5000)
	gone, later := make(chan struct{}), make(chan struct{})
	give := func(name, path string, op int32, up chan struct{}, batch bool) {
		c := b.call(name, path, op)
		c.GivenUp = up
		if batch {
			c.Batch = b.number(name)
		}
		b.Post(c)
	}
	give("create", "/a/0-", codec.OpCreate, gone, true)
	give("delete", "/a/1", codec.OpDelete, gone, true)
	give("list", "/a", codec.OpGetChildren2, gone, false)
	give("second", "/a", codec.OpGetChildren2, later, false)
	give("alive", "/a/2-", codec.OpCreate, later, true)
	give("b", "/b/0-", codec.OpCreate, gone, true)
	give("c", "/c/0-", codec.OpCreate, later, true)
	b.got = nil
	b.check("while the window is full", b.leave())
	close(gone)
	b.check("then", b.answers(3), "create /c/0-", "create /a/2-", "list /a")
	b.answers(1)
	b.EndGivenUp()
	slices.Sort(b.got)
	const up = ": given up before it was sent"
	b.check("ended", b.got, "alive: /a/2-", "b"+up, "c: /c/0-", "create"+up, "delete"+up, "first", "list"+up, "second")
	close(later)
	if b.check("at last", b.leave()); !b.waiting.empty() || len(b.waiting.dirs) > 0 || b.window.flying > 0 {
		t.Errorf("%d directories wait, and %d calls are in flight", len(b.waiting.dirs), b.window.flying)
	}
}

// Calls whose callers have given up do not pile up while nothing leaves. Those of all others stay.
func TestGivenUpDoNotPileUp(t *testing.T) {
	b := full(t, 1)
	stays, ended := 0, 0
	for i := range 100_000 {
		c := Call{Frame: callFrame(codec.OpCreate, fmt.Sprintf("/%d/n-", i%7)), Done: func(Reply) { ended++ }}
		switch i % 3 {
		case 0:
			c.Frame = callFrame(codec.OpDelete, "/d/1")
		case 1:
			c.Frame = callFrame(codec.OpGetChildren2, "/d")
		}
		if i%100 == 0 {
			stays++
		} else {
			up := make(chan struct{})
			close(up)
			c.GivenUp = up
		}
		b.Post(c)
		if i%50 == 0 {
			b.CanLeave()
			b.EndGivenUp()
		}
		if i%1000 != 0 {
			continue
		}
		if n := len(b.waiting.all()); n > 2*max(stays, mostKept)+mostKept {
			t.Fatalf("%d calls wait, and %d are wanted", n, stays)
		}
	}
	b.waiting.sweep()
	b.EndGivenUp()
	if n := len(b.waiting.all()); n != stays || ended != 100_000-stays {
		t.Errorf("%d calls wait and %d have ended, want %d and %d", n, ended, stays, 100_000-stays)
	}
	left := 0
	for b.answer(10); len(b.leave()) > 0; b.answer(10) {
		left++
	}
	if b.Forsake(false); left == 0 || ended != 100_000 {
		t.Errorf("%d have left, and %d of 100000 have ended", left, ended)
	}
}

// closeSession leaves ahead of what waits, and what waits is not sent any more.
func TestCloseSessionEndsWhatWaits(t *testing.T) {
	b := full(t, 1)
	b.want("waiting", "/a", codec.OpCreate)
	b.got = nil
	b.Stop()
	b.check("ended", b.got, "waiting: "+ErrNotSent.Error())
	if b.Post(b.call("late", "/a", codec.OpCreate)) {
		t.Error("a call is taken after that")
	}
	b.answer(10)
	b.check("left", b.leave())
}

// After a burst, nothing of the directories stays.
func TestOutboxShrinks(t *testing.T) {
	b := newBurst(t, 4)
	burst := func(n int) {
		for i := range n {
			b.batch("", fmt.Sprintf("/%d/n-", i), codec.OpCreate)
			b.want("", fmt.Sprint("/", i), codec.OpGetChildren2)
		}
		for b.leave(); len(b.sent) > 0; b.leave() {
			b.reply(10, succeeds(b.sent[0]))
		}
		b.got, b.sent, b.numbers = nil, nil, nil
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	burst(10)
	before := heap()
	burst(20_000)
	for range 1000 {
		burst(1)
	}
	b.expected = expected{} // which is bounded by itself
	if more := heap() - before; more > 64<<10 {
		t.Errorf("%d bytes are kept after a burst of 20000 directories", more)
	}
	runtime.KeepAlive(b)
}

// A call can say that it is about another directory than that of its path. It waits among the calls of that one, in order.
func TestDirOfACall(t *testing.T) {
	b := full(t, 1)
	for i := range 3 {
		b.want("a", fmt.Sprintf("/a/%d", i), codec.OpExists)
	}
	b.want("b", "/a/b/0-", codec.OpCreate)
	one := b.call("b", "/a/b", codec.OpExists)
	one.Dir = "/a/b"
	b.Post(one)
	b.want("b", "/a/b/1", codec.OpExists)
	b.check("in turn", b.answers(6), "exists /a/0", "create /a/b/0-", "exists /a/1", "exists /a/b", "exists /a/2", "exists /a/b/1")
}

// Each call has one directory: that of its node, or the one that it lists.
func TestDirOf(t *testing.T) {
	for _, c := range []struct {
		op         int32
		path, want string
	}{
		{codec.OpCreate, "/a/b/n-", "/a/b"}, {codec.OpCreate, "/a/b/", "/a/b"}, {codec.OpCreate, "/n-", "/"}, {codec.OpDelete, "/a/b/1", "/a/b"},
		{codec.OpGetData, "/a/b/1", "/a/b"}, {codec.OpExists, "/", "/"}, {codec.OpGetChildren2, "/a/b", "/a/b"}, {codec.OpGetChildren2, "/", "/"},
		{codec.OpSync, "/a/b", "/a/b"}, {codec.OpMulti, "/a", ""}, {codec.OpSetWatches, "/a", ""},
	} {
		if got := string(dirOf(callFrame(c.op, c.path))); got != c.want {
			t.Errorf("request %d of %s is about %q, want %q", c.op, c.path, got, c.want)
		}
	}
}

// The numbers begin again before they are used up, and are never those that mean something else.
func TestNumbers(t *testing.T) {
	for n, want := range map[int64]int32{
		1: 1, 2: 2, math.MaxInt32 - 1: math.MaxInt32 - 1, math.MaxInt32: math.MaxInt32, math.MaxInt32 + 1: 1, 2 * math.MaxInt32: math.MaxInt32,
	} {
		if got := xidOfCall(n); got != want {
			t.Errorf("call %d has number %d, want %d", n, got, want)
		}
	}
	o := &Outbox{own: math.MinInt32 + 1}
	for _, want := range []int32{math.MinInt32, firstOwn - 1, firstOwn - 2} {
		if got := o.Number(); got != want {
			t.Errorf("a heartbeat has number %d, want %d", got, want)
		}
	}
}

// After a burst, the calls of a connection take no more memory than before it.
func TestCallsShrink(t *testing.T) {
	c := newOutbox()
	c.Begin(time.Hour)
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	burst := func(n int) {
		frame := callFrame(codec.OpDelete, "/a")
		for range n {
			c.Post(Call{Frame: frame, Done: func(Reply) {}})
		}
		c.window.calls = mostCalls
		for c.CanLeave() {
			c.Take(time.Now(), time.Now())
			for xid := range maps.Clone(c.sent) {
				c.Answered(time.Now(), xid, 0)
			}
		}
	}
	burst(10)
	before := heap()
	burst(10_000)
	for range 1000 {
		burst(1)
	}
	if more := int64(heap()) - int64(before); more > 64<<10 {
		t.Errorf("%d bytes are kept after a burst of 10000 calls", more)
	}
	runtime.KeepAlive(c)
}
