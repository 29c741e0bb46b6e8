package locks

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// queueOf builds a lock from words such as "1", "2:label", "3*2" (two leases), "4r" and "5w" (modes). They are sessions. The
// first holds of them hold.
func queueOf(kind Kind, path string, limit, holds int, words ...string) *Lock {
	l := &Lock{Path: path, Kind: kind, Limit: limit}
	for i, word := range words {
		c := Contender{Path: fmt.Sprintf("%s/%d", path, i), Sequence: int32(i), Holds: i < holds, Known: true, Leases: 1}
		word, c.Label, _ = strings.Cut(word, ":")
		if head, n, ok := strings.Cut(word, "*"); ok {
			word = head
			_, _ = fmt.Sscan(n, &c.Leases)
		}
		switch {
		case strings.HasSuffix(word, "r"):
			word, c.Mode = strings.TrimSuffix(word, "r"), "read"
		case strings.HasSuffix(word, "w"):
			word, c.Mode = strings.TrimSuffix(word, "w"), "write"
		}
		if word == "hand" {
			c.ByHand = true
		}
		if word == "?" {
			c.Known = false
		}
		c.Session = word
		l.Contenders = append(l.Contenders, c)
	}
	return l
}

func (c Circle) text() string {
	var words []string
	for _, w := range c.Waits {
		words = append(words, w.Waiter.Session+"-"+w.Lock+"-"+w.Behind.Session)
	}
	text := strings.Join(words, " ")
	if c.Certain {
		text += " certain"
	}
	return text
}

func TestCircles(t *testing.T) {
	mutex := func(path string, words ...string) *Lock { return queueOf(Mutex, path, 0, 1, words...) }
	for _, c := range []struct {
		what  string
		locks []*Lock
		want  []string
	}{
		{"nothing", nil, nil},
		{"a queue", []*Lock{mutex("a", "1", "2", "3")}, nil},
		{"two of two", []*Lock{mutex("a", "1", "2"), mutex("b", "2", "1")}, []string{"2-a-1 1-b-2"}},
		{"the same order", []*Lock{mutex("a", "1", "2"), mutex("b", "1", "2")}, nil},
		{"three", []*Lock{mutex("a", "1", "3"), mutex("b", "2", "1"), mutex("c", "3", "2")}, []string{"3-a-1 1-b-2 2-c-3"}},
		{"one behind a circle", []*Lock{mutex("a", "1", "2", "9"), mutex("b", "2", "1")}, []string{"2-a-1 1-b-2"}},
		{"through a waiter", []*Lock{mutex("a", "1", "2", "3"), mutex("b", "3", "2")}, []string{"3-a-2 2-b-3"}},
		{"two circles", []*Lock{mutex("a", "1", "2"), mutex("b", "2", "1"), mutex("c", "3", "4"), mutex("d", "4", "3")},
			[]string{"2-a-1 1-b-2", "4-c-3 3-d-4"}},
		{"labels", []*Lock{mutex("a", "1:x", "2:y"), mutex("b", "2:y", "1:x")}, []string{"2-a-1 1-b-2 certain"}},
		{"other labels", []*Lock{mutex("a", "1:x", "2:y"), mutex("b", "2:y", "1:z")}, nil},
		{"a label that waits for itself", []*Lock{mutex("a", "1:x", "1:x")}, []string{"1-a-1 certain"}},
		{"goroutines of a process", []*Lock{mutex("a", "1", "1", "1")}, nil},
		{"by hand", []*Lock{mutex("a", "hand", "2"), mutex("b", "2", "hand")}, nil},
		{"unread", []*Lock{mutex("a", "?", "2"), mutex("b", "2", "?")}, nil},
		{"readers", []*Lock{queueOf(RWLock, "a", 0, 2, "1r", "2r", "3w"), mutex("b", "3", "1")}, []string{"3-a-1 1-b-3"}},
		{"a reader behind a writer", []*Lock{queueOf(RWLock, "a", 0, 1, "1r", "2w", "3r"), mutex("b", "3", "2")}, []string{"3-a-2 2-b-3"}},
		{"readers wait for no readers", []*Lock{queueOf(RWLock, "a", 0, 1, "9w", "1r", "2r"), mutex("b", "2", "1")}, nil},
		{"a semaphore with a free holder", []*Lock{queueOf(Semaphore, "a", 2, 2, "1", "9", "2"), mutex("b", "2", "1")}, nil},
		{"all leases", []*Lock{queueOf(Semaphore, "a", 2, 2, "1", "3", "2"), mutex("b", "2", "1"), mutex("c", "2", "3")},
			[]string{"2-a-1 1-b-2 3-c-2"}},
		{"too few leases", []*Lock{queueOf(Semaphore, "a", 2, 2, "1", "9", "2*2"), mutex("b", "2", "1")}, []string{"2-a-1 1-b-2"}},
		{"unknown limit", []*Lock{queueOf(Semaphore, "a", 0, 1, "1", "2"), mutex("b", "2", "1")}, nil},
	} {
		var got []string
		for _, circle := range Circles(c.locks) {
			got = append(got, circle.text())
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// A circle is confirmed if all of its contenders are there later, and do the same.
func TestConfirm(t *testing.T) {
	before := []*Lock{queueOf(Mutex, "a", 0, 1, "1", "2"), queueOf(Mutex, "b", 0, 1, "2", "1")}
	circles := Circles(before)
	for _, c := range []struct {
		what  string
		later []*Lock
		want  int
	}{
		{"the same", before, 1},
		{"one more waits", []*Lock{queueOf(Mutex, "a", 0, 1, "1", "2", "3"), before[1]}, 1},
		{"one has left", []*Lock{queueOf(Mutex, "a", 0, 1, "1"), before[1]}, 0},
		{"one holds both", []*Lock{queueOf(Mutex, "a", 0, 2, "1", "2"), before[1]}, 0},
	} {
		if got := Confirm(circles, c.later); len(got) != c.want {
			t.Errorf("%s: %d circles, want %d", c.what, len(got), c.want)
		}
	}
}
