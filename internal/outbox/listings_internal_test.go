package outbox

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

func callFrame(op int32, path string) []byte {
	e := codec.NewFrame()
	e.Int32(0)
	e.Int32(op)
	e.String(path)
	return e.Frame()
}

// newOutbox returns an outbox that shares nothing.
func newOutbox() *Outbox {
	return New(Config{Refusals: new(Refusals), Batches: new(atomic.Int64), Window: new(atomic.Int32)})
}

// burst is a connection's calls, without a connection.
type burst struct {
	*Outbox
	t    *testing.T
	most int      // calls in flight
	sent [][]byte // without an answer
	got  []string // the names of the callers who have an answer, in order

	numbers map[string]*atomic.Int64 // of the multis, by the names of the callers
}

func newBurst(t *testing.T, window int) *burst {
	b := &burst{Outbox: newOutbox(), t: t, most: window}
	b.Begin(10 * time.Second)
	return b
}

// want adds a call.
func (b *burst) want(name, path string, op int32) { b.Post(b.call(name, path, op)) }

// batch adds a call that may leave with others.
func (b *burst) batch(name, path string, op int32) {
	c := b.call(name, path, op)
	c.Batch = b.number(name)
	b.Post(c)
}

func (b *burst) number(name string) *atomic.Int64 {
	if b.numbers == nil {
		b.numbers = make(map[string]*atomic.Int64)
	}
	if b.numbers[name] == nil {
		b.numbers[name] = new(atomic.Int64)
	}
	return b.numbers[name]
}

func (b *burst) call(name, path string, op int32) Call {
	return Call{Frame: callFrame(op, path), Done: func(r Reply) {
		switch {
		case r.Err != nil:
			name += ": " + r.Err.Error()
		case r.Code != codec.CodeOK:
			name += fmt.Sprint(": ", r.Code)
		case r.Path != "":
			name += ": " + r.Path
		}
		b.got = append(b.got, name)
	}}
}

// leave sends what may leave, and returns it.
func (b *burst) leave() (all []string) {
	now := time.Now()
	for {
		b.window.calls = b.most // answers would widen it
		frames := b.Take(now, now)
		if len(frames) == 0 {
			return all
		}
		b.sent = append(b.sent, frames...)
		for _, f := range frames {
			all = append(all, words(f))
		}
	}
}

var wordOf = map[int32]string{codec.OpCreate: "create", codec.OpGetChildren2: "list", codec.OpDelete: "delete", codec.OpExists: "exists"}

func pathOf(frame []byte) string { return string(frame[16 : 16+binary.BigEndian.Uint32(frame[12:])]) }

// words describes a request. A multi is all of its operations.
func words(frame []byte) string {
	if codec.Op(frame) != codec.OpMulti {
		return wordOf[codec.Op(frame)] + " " + pathOf(frame)
	}
	var all []string
	for d := codec.Decode(frame[8:]); ; {
		op, last := d.MultiHeader()
		if last {
			return strings.Join(all, " + ")
		}
		all = append(all, wordOf[op]+" "+d.String())
	}
}

// answer answers the oldest call, with so many bytes.
func (b *burst) answer(size int) { b.reply(size, Reply{}) }

// reply gives the oldest call an answer of so many bytes.
func (b *burst) reply(size int, r Reply) {
	oldest := b.sent[0]
	b.sent = b.sent[1:]
	one, _ := b.Find(codec.Xid(oldest))
	if one.Check != nil && r.Code == codec.CodeOK {
		if err := one.Check(&r.Answer); err != nil {
			b.t.Errorf("the answer to %s: %v", words(oldest), err)
		}
	}
	b.Answered(time.Now(), codec.Xid(oldest), size)
	one.Done(r)
	b.EndGivenUp()
}

func (b *burst) check(what string, got []string, want ...string) {
	b.t.Helper()
	if !slices.Equal(got, want) {
		b.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// Lists that find no room let the creates behind them go first, and leave once for all.
func TestListsLeaveTogether(t *testing.T) {
	b := newBurst(t, 2)
	b.want("first", "/a", codec.OpGetChildren2)
	b.leave()
	b.answer(5000) // now the length is known
	b.want("one", "/x", codec.OpExists)
	b.want("two", "/x", codec.OpExists)
	b.leave()
	b.got = nil
	for i := range 3 {
		b.want(fmt.Sprint("create ", i), "/a/n-", codec.OpCreate)
		b.want(fmt.Sprint("list ", i), "/a", codec.OpGetChildren2)
	}
	b.check("while the window is full", b.leave())
	b.answer(10)
	b.check("with room for one", b.leave(), "create /a/n-")
	b.answer(10)
	b.check("with room for one", b.leave(), "create /a/n-")
	b.answer(10)
	b.check("with room for one", b.leave(), "create /a/n-")
	b.answer(10)
	b.check("with room for one", b.leave(), "list /a")
	b.want("late", "/a", codec.OpGetChildren2)
	b.answer(10)
	b.check("after the last create", b.leave(), "list /a")
	b.answer(5000)
	b.answer(5000)
	b.check("answers", b.got, "one", "two", "create 0", "create 1", "create 2", "list 0", "list 1", "list 2", "late")
}

// Lists let the creates behind them go first although there is room, once calls have waited for room: many answers can come
// at a time.
func TestListsLeaveTogetherWithRoom(t *testing.T) {
	b := newBurst(t, 4)
	b.want("first", "/a", codec.OpGetChildren2)
	b.leave()
	b.answer(5000) // now the length is known
	for range 4 {
		b.want("other", "/x", codec.OpExists)
	}
	b.leave()
	for range 3 {
		b.want("create", "/a/n-", codec.OpCreate)
		b.want("list", "/a", codec.OpGetChildren2)
	}
	b.check("while the window is full", b.leave())
	for range 4 {
		b.answer(10)
	}
	b.check("with room for four", b.leave(), "create /a/n-", "create /a/n-", "create /a/n-", "list /a")
}

// A list waits for one window of calls, however many more come.
func TestListDoesNotStarve(t *testing.T) {
	b := newBurst(t, 1)
	b.want("first", "/a", codec.OpGetChildren2)
	b.leave()
	b.answer(5000)
	b.want("one", "/x", codec.OpExists)
	b.leave()
	b.want("list", "/a", codec.OpGetChildren2)
	b.want("create", "/a/n-", codec.OpCreate)
	b.leave()
	for n := range 3 * mostCalls {
		b.want("create", "/a/n-", codec.OpCreate)
		b.answer(10)
		if left := b.leave(); slices.Contains(left, "list /a") {
			if n != mostCalls {
				t.Errorf("the list leaves behind %d others, want %d", n, mostCalls)
			}
			return
		}
	}
	t.Error("the list does not leave")
}

// Of a directory of which the length is not known, one list is in flight. It holds up no other call.
func TestUnknownListHoldsUpNobody(t *testing.T) {
	b := newBurst(t, firstCalls)
	for i := range 3 {
		b.want(fmt.Sprint("a ", i), "/a", codec.OpGetChildren2)
	}
	b.want("b", "/b", codec.OpGetChildren2)
	b.want("create", "/a/n-", codec.OpCreate)
	b.check("at once", b.leave(), "list /a", "create /a/n-", "list /b")
	b.answer(5000)
	b.check("after the answer", b.leave(), "list /a")
	b.answer(10)
	b.answer(10)
	b.answer(5000)
	b.check("answers", b.got, "a 0", "create", "b", "a 1", "a 2")
}

// The end of the connection ends lists that wait aside.
func TestForsakenLists(t *testing.T) {
	b := newBurst(t, firstCalls)
	for i := range 3 {
		b.want(fmt.Sprint(i), "/a", codec.OpGetChildren2)
	}
	b.leave()
	b.Forsake(false)
	const closed = ": use of closed network connection"
	b.check("answers", b.got, "0"+closed, "1: "+ErrNotSent.Error(), "2: "+ErrNotSent.Error())
}
