package outbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Waiters set their watches with setWatches, and users send multis. Those of another lock do not wait for a burst either.
func TestWatchesAndMultisTakeTurns(t *testing.T) {
	for name, frame := range map[string]func(path string) []byte{"setWatches": watchesFrame, "multi": deletesFrame} {
		t.Run(name, func(t *testing.T) {
			b := full(t, 1)
			post := func(caller, path string) {
				b.Post(Call{Frame: frame(path), Done: func(Reply) { b.got = append(b.got, caller) }})
			}
			for i := range 1000 {
				post("burst", fmt.Sprintf("/a/n-%d", i))
			}
			post("other", "/b/n-0")
			b.got = nil
			answers := 0
			for ; !slices.Contains(b.got, "other") && answers < 2000; answers++ {
				b.reply(10, Reply{})
				b.window.calls = b.most
				b.sent = append(b.sent, b.Take(time.Now(), time.Now())...)
			}
			if answers > 5 {
				t.Errorf("answered after %d others", answers)
			}
		})
	}
}

func watchesFrame(path string) []byte {
	e := codec.NewFrame()
	e.Int32(0) // the number
	e.Int32(codec.OpSetWatches)
	e.Int64(1)
	e.Strings([]string{path})
	e.Strings(nil)
	e.Strings(nil)
	return e.Frame()
}

func deletesFrame(path string) []byte {
	e := codec.NewFrame()
	e.Int32(0) // the number
	e.Int32(codec.OpMulti)
	e.MultiHeader(codec.OpDelete, false, -1)
	e.String(path)
	e.Int32(-1)
	e.MultiHeader(codec.OpError, true, -1)
	return e.Frame()
}

// A frame without a path has no directory, however it is made.
func TestDirectoryOfOddFrames(t *testing.T) {
	e := codec.NewFrame()
	e.Int32(0)
	e.Int32(codec.OpMulti)
	e.MultiHeader(codec.OpError, true, -1)
	for _, frame := range [][]byte{e.Frame(), codec.CloseFrame(1), watchesFrame("/a/b")[:24]} {
		if dir := dirOf(frame); dir != nil {
			t.Errorf("%v: %q", frame, dir)
		}
	}
}

// Callers that delete one node after the other, more of them than there is room for, starve nobody.
func TestDeletesStarveNobody(t *testing.T) {
	b := newBurst(t, 4)
	deleted := 0
	var again func()
	again = func() {
		deleted++
		c := b.call("", fmt.Sprintf("/x/%d", deleted), codec.OpDelete)
		c.Done = func(Reply) { again() }
		b.Post(c)
	}
	for range 8 {
		again()
	}
	b.leave()
	b.batch("create", "/lock/n-", codec.OpCreate)
	b.want("list", "/lock", codec.OpGetChildren2)
	for len(b.got) == 0 && deleted < 1000 {
		b.reply(10, Reply{})
		b.leave()
	}
	if len(b.got) == 0 {
		t.Errorf("nothing else has left after %d deletes", deleted)
	}
}

// A delete that goes alone is not overtaken by a read of its node.
func TestReadStaysBehindDelete(t *testing.T) {
	b := newBurst(t, mostCalls)
	for i := range mostBatches {
		b.batch("w", fmt.Sprintf("/w/%d", i), codec.OpDelete)
	}
	b.leave()
	b.batch("another", "/o/1", codec.OpDelete)
	b.want("delete", "/a/n", codec.OpDelete)
	b.want("exists", "/a/n", codec.OpExists)
	left := b.leave()
	for len(b.sent) > 0 {
		b.reply(10, succeeds(b.sent[0]))
		left = append(left, b.leave()...)
	}
	if slices.Index(left, "exists /a/n") < slices.Index(left, "delete /a/n") {
		t.Errorf("%q", left)
	}
}

// After a refused multi, requests go alone, and as many of them as without any multis.
func TestAloneIsNotSlow(t *testing.T) {
	b := newBurst(t, mostCalls)
	b.want("", "/x", codec.OpExists)
	b.leave()
	b.caution.failed()
	for i := range 12 {
		b.batch("", fmt.Sprintf("/%d/n-", i), codec.OpCreate)
	}
	if left := b.leave(); len(left) < 12 {
		t.Errorf("%d of 12 leave", len(left))
	}
}

// The directories of new locks lie in one directory. Each has a turn of its own, so that a burst of new locks does not
// wait a round for each of them.
func TestContainersTakeTurns(t *testing.T) {
	b := newBurst(t, 1)
	b.want("first", "/x", codec.OpExists)
	b.leave()
	const busy, made = 20, 10
	for i := range made {
		b.want("container", fmt.Sprintf("/locks/%d", i), codec.OpCreateContainer)
	}
	for range made {
		for i := range busy {
			b.want("busy", fmt.Sprintf("/busy/%d/n", i), codec.OpExists)
		}
	}
	var left []string
	for len(b.sent) > 0 && len(left) < busy+made {
		b.reply(10, Reply{})
		left = append(left, b.leave()...)
	}
	n := 0
	for _, one := range left {
		if strings.Contains(one, "/locks/") {
			n++
		}
	}
	if n != made {
		t.Errorf("%d of %d directories are made in the first round: %q", n, made, left)
	}
}
