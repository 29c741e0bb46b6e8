package outbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// tell has the oldest call answered with this code for each part, and returns what leaves then.
func (b *burst) tell(codes ...int32) []string {
	var r Reply
	for _, code := range codes {
		r.Results = append(r.Results, codec.Result{Op: codec.OpError, Code: code})
	}
	b.reply(10, r)
	return b.leave()
}

// What waits leaves together: deletes first, then one create of each directory, and no other call. Each gets its own result,
// and the number of the multi.
func TestTogether(t *testing.T) {
	b := full(t, 1)
	b.batch("a", "/a/0-", codec.OpCreate)
	b.batch("a again", "/a/1-", codec.OpCreate)
	b.batch("b", "/b/0-", codec.OpCreate)
	b.want("single", "/c/0-", codec.OpCreate)
	b.batch("d", "/d/0", codec.OpDelete)
	b.want("single", "/d/1", codec.OpDelete)
	b.batch("e", "/e/0", codec.OpDelete)
	b.got = nil
	b.check("what leaves", b.answers(4), "delete /d/0 + delete /e/0 + create /a/0- + create /b/0-", "create /a/1-",
		"create /c/0-", "delete /d/1")
	b.check("ended", b.got, "first", "d", "e", "a: /a/0-", "b: /b/0-", "a again: /a/1-", "single: /c/0-")
	for name, want := range map[string]int64{"d": 1, "e": 1, "a": 1, "b": 1, "a again": 0} {
		if got := b.numbers[name].Load(); got != want {
			t.Errorf("%s left in multi %d, want %d", name, got, want)
		}
	}
}

// While there is room, each leaves alone and at once. One that is the last to wait is alone too.
func TestAloneWithRoom(t *testing.T) {
	b := newBurst(t, 8)
	var want []string
	for i := range 8 {
		b.batch(fmt.Sprint(i), fmt.Sprintf("/%d/n-", i), codec.OpCreate)
		want = append(want, fmt.Sprintf("create /%d/n-", i))
	}
	b.check("with room for all", b.leave(), want...)
	b.batch("last", "/x/n-", codec.OpCreate)
	b.check("with room for one", b.answers(1), "create /x/n-")
	for b.answers(1); len(b.sent) > 0; {
		b.answers(1)
	}
	b.batch("later", "/x/n-", codec.OpCreate)
	b.batch("later", "/y/n-", codec.OpCreate)
	b.check("when the others were answered", b.leave(), "create /x/n-", "create /y/n-")
	if n := b.cfg.Batches.Load(); n != 0 {
		t.Errorf("%d multis", n)
	}
}

// A multi has at most 16 operations and 16 kB, and no more bytes than there is room for.
func TestBatchLimits(t *testing.T) {
	long := func(n int) string { return "/" + strings.Repeat("x", n) }
	for _, c := range []struct {
		name        string
		path        string
		window, ops int
	}{
		{"short", "/n-", mostBytes, 16},
		{"long", long(2000), mostBytes, 7},
		{"too long for two", long(8000), mostBytes, 1},
		{"too long", long(20_000), mostBytes, 1},
		{"little room", long(100), 1500, 12},
	} {
		for _, op := range []int32{codec.OpCreate, codec.OpDelete} {
			b := full(t, 1)
			for i := range 40 {
				b.batch("", fmt.Sprintf("/%02d%s", i, c.path), op)
			}
			b.leave()
			b.window.bytes = c.window
			left := b.answers(1)[0]
			size := len(b.sent[0])
			if ops := strings.Count(left, "+") + 1; ops != c.ops || ops > 1 && size > min(batchBytes, c.window) {
				t.Errorf("%s, %s: %d operations and %d bytes, want %d operations", c.name, wordOf[op], ops, size, c.ops)
			}
			if c.ops < 2 {
				continue
			}
			var sum int
			for i := range c.ops {
				one := Call{Frame: callFrame(op, fmt.Sprintf("/%02d%s", i, c.path))}
				sum += partSize(&one)
			}
			if size != batchFrame+sum {
				t.Errorf("%s, %s: %d bytes, and partSize says %d", c.name, wordOf[op], size, batchFrame+sum)
			}
		}
	}
}

// With room in the window, all leave alone. When one has found none, others wait for each other while four writes are in
// flight, unless they fill a multi. Reads do not wait.
func TestFewBatchesAtATime(t *testing.T) {
	b := newBurst(t, 8)
	b.window.bytes = mostBytes
	came := 0
	come := func(n int) (left []string) {
		for range n {
			b.batch("", fmt.Sprintf("/%d/n-", came), codec.OpCreate)
			came++
		}
		return b.leave()
	}
	if left := come(8); len(left) != 8 {
		t.Errorf("%d leave, want 8", len(left))
	}
	b.check("one more than the window has room for", come(1))
	for range 4 {
		b.check("while 4 or more are in flight", b.tell())
	}
	b.want("read", "/r", codec.OpExists)
	b.check("a read", b.leave(), "exists /r")
	b.check("when 3 are in flight", b.tell(), "create /8/n-")
	b.check("nothing waits any more, and there is room for 3", come(18), "create /9/n-", "create /10/n-", "create /11/n-")
	b.check("while 15 wait", b.tell())
	if left := come(1); len(left) != 1 || strings.Count(left[0], "+") != 15 {
		t.Errorf("%q leave, want a multi of 16", left)
	}
}

// A multi that was refused has changed nothing. Its parts leave again ahead of all others, each alone, and cost only
// themselves. Then calls leave alone for a while: the longer, the more multis were refused in a row.
func TestRefusedTogether(t *testing.T) {
	for name, r := range map[string]Reply{
		"one part": {Answer: codec.Answer{Results: []codec.Result{
			{Op: codec.OpError}, {Op: codec.OpError, Code: codec.CodeNoNode}, {Op: codec.OpError, Code: codec.CodeRuntimeInconsistency}}}},
		"as a whole": {Code: codec.CodeMarshallingError},
	} {
		t.Run(name, func(t *testing.T) {
			b := full(t, 1)
			b.batch("d", "/d/0", codec.OpDelete)
			b.batch("a", "/a/0-", codec.OpCreate)
			b.batch("b", "/b/0-", codec.OpCreate)
			b.got = nil
			b.check("together", b.answers(1), "delete /d/0 + create /a/0- + create /b/0-")
			b.batch("late", "/e/0", codec.OpDelete)
			b.batch("late", "/a/1-", codec.OpCreate)
			b.reply(10, r)
			b.check("again", b.leave(), "delete /d/0")
			b.check("ended so far", b.got, "first")
			b.check("alone", b.answers(1), "create /a/0-")
			b.reply(10, Reply{Code: codec.CodeNoNode})
			b.check("alone", b.leave(), "create /b/0-")
			b.check("then", b.answers(2), "delete /e/0", "create /a/1-")
			b.check("ended", b.got, "first", "d", "a: -101", "b: /b/0-", "late")
			if n := b.cfg.Batches.Load(); n != 1 {
				t.Errorf("%d multis", n)
			}
		})
	}
}

// For how long calls leave alone after multis were refused.
func TestCaution(t *testing.T) {
	var c caution
	alone := func() (n int) {
		for ; c.left > 0; n++ {
			c.spend()
		}
		return n
	}
	for _, want := range []int{16, 32, 64} {
		c.failed()
		if n := alone(); n != want {
			t.Errorf("%d leave alone, want %d", n, want)
		}
	}
	for range 3 {
		c.succeeded()
	}
	c.failed()
	if n := alone(); n != 16 {
		t.Errorf("after some have succeeded %d leave alone", n)
	}
	for range 20 {
		c.failed()
	}
	if n := alone(); n != 1024 {
		t.Errorf("at most %d leave alone", n)
	}
}

// The calls that leave alone for caution are those that could leave together, also while there is room.
func TestCautionIsSpent(t *testing.T) {
	b := full(t, 1)
	b.batch("", "/a/0-", codec.OpCreate)
	b.batch("", "/none/0-", codec.OpCreate)
	b.answers(1)
	b.tell(codec.CodeOK, codec.CodeNoNode)
	b.answers(1)
	b.answers(1)
	for i := range 15 { // one at a time
		b.batch("", fmt.Sprintf("/a/%d-", i), codec.OpCreate)
		b.answers(1)
		b.want("", "/w", codec.OpExists) // which could not
		b.answers(1)
	}
	for i := range 3 {
		b.batch("", fmt.Sprintf("/%d/n-", i), codec.OpCreate)
	}
	b.check("after 15 that left alone", b.answers(2), "create /0/n-", "create /1/n- + create /2/n-")
}

// A multi without an answer, or with one that is about the session or the server, ends each part with just that.
func TestLostTogether(t *testing.T) {
	pair := func() *burst {
		b := full(t, 1)
		b.batch("a", "/a/0-", codec.OpCreate)
		b.batch("b", "/b/0-", codec.OpCreate)
		b.got = nil
		b.check("together", b.answers(1), "create /a/0- + create /b/0-")
		b.want("waiting", "/a", codec.OpGetChildren2)
		return b
	}
	b := pair()
	b.Forsake(false)
	const closed = ": use of closed network connection"
	b.check("ended", b.got, "first", "a"+closed, "b"+closed, "waiting: "+ErrNotSent.Error())
	for _, code := range []int32{codec.CodeSessionExpired, codec.CodeSessionMoved, codec.CodeThrottled, codec.CodeConnectionLoss, codec.CodeOperationTimeout} {
		b := pair()
		b.reply(0, Reply{Code: code})
		b.check("ended", b.got, "first", fmt.Sprint("a: ", code), fmt.Sprint("b: ", code))
		b.check("then", b.leave(), "list /a")
	}
}

// If a multi is refused after closeSession was sent, its parts were not sent.
func TestRefusedAfterClose(t *testing.T) {
	b := full(t, 1)
	b.batch("a", "/a/0-", codec.OpCreate)
	b.batch("b", "/b/0-", codec.OpCreate)
	b.answers(1)
	b.got = nil
	b.Stop()
	b.check("then", b.tell(codec.CodeNoNode, codec.CodeRuntimeInconsistency))
	b.check("ended", b.got, "a: "+ErrNotSent.Error(), "b: "+ErrNotSent.Error())
}

// Results that no server gives end the connection: see Call.Check.
func TestCheckParts(t *testing.T) {
	wrong := errors.New("another path")
	parts := []Call{
		{Frame: callFrame(codec.OpCreate, "/a"), Check: func(a *codec.Answer) error {
			if a.Path != "/a" {
				return wrong
			}
			return nil
		}},
		{Frame: callFrame(codec.OpDelete, "/b")},
	}
	made, gone := codec.Result{Op: codec.OpCreate, Path: "/a"}, codec.Result{Op: codec.OpDelete}
	none, other := codec.Result{Op: codec.OpError, Code: codec.CodeNoNode}, codec.Result{Op: codec.OpError, Code: codec.CodeRuntimeInconsistency}
	for _, c := range []struct {
		results []codec.Result
		ok      bool
	}{
		{[]codec.Result{made, gone}, true},
		{[]codec.Result{none, other}, true},
		{[]codec.Result{{Op: codec.OpError}, none}, true},
		{nil, false},
		{[]codec.Result{made}, false},
		{[]codec.Result{made, gone, gone}, false},
		{[]codec.Result{gone, made}, false},
		{[]codec.Result{{Op: codec.OpCreate, Path: "/x"}, gone}, false},
		{[]codec.Result{made, none}, false},
		{[]codec.Result{{Op: codec.OpError}, {Op: codec.OpError}}, false},
	} {
		if err := checkParts(parts, c.results); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.results, err)
		}
	}
}

// A multi is never taken for a request that the server refuses for its length.
func TestBatchIsNotSuspicious(t *testing.T) {
	if batchBytes >= SuspiciousLength {
		t.Errorf("a multi can have %d bytes; from %d on a request is suspicious", batchBytes, SuspiciousLength)
	}
}
