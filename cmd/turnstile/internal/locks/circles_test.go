package locks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/queue"
)

// queueOf builds a lock from words such as "1", "2:label", "3*2" (two leases), "4r" and "5w" (modes). They are sessions, 0
// that of a node that was made by hand. The first holds of them hold.
func queueOf(kind Kind, path string, limit, holds int, words ...string) *Lock {
	l := &Lock{Path: path, Kind: kind, Limit: limit}
	for i, word := range words {
		c := Contender{Contender: queue.Contender{Path: fmt.Sprintf("%s/%d", path, i), Holder: i < holds}, Leases: 1}
		word, c.Label, _ = strings.Cut(word, ":")
		if head, n, ok := strings.Cut(word, "*"); ok {
			word = head
			_, _ = fmt.Sscan(n, &c.Leases)
		}
		if n := len(word) - 1; word[n] == 'r' || word[n] == 'w' {
			word, c.Mode = word[:n], map[byte]string{'r': "read", 'w': "write"}[word[n]]
		}
		c.Session, _ = strconv.ParseInt(word, 10, 64)
		l.Contenders = append(l.Contenders, c)
	}
	return l
}

func TestCircles(t *testing.T) {
	mutex := func(path string, words ...string) *Lock { return queueOf(Mutex, path, 0, 1, words...) }
	for _, c := range []struct {
		what  string
		locks []*Lock
		want  string // the waiters that are stuck, and their locks
	}{
		{"nothing", nil, ""},
		{"a queue", []*Lock{mutex("a", "1", "2", "3")}, ""},
		{"two of two", []*Lock{mutex("a", "1", "2"), mutex("b", "2", "1")}, "1-b 2-a"},
		{"the same order", []*Lock{mutex("a", "1", "2"), mutex("b", "1", "2")}, ""},
		{"three", []*Lock{mutex("a", "1", "3"), mutex("b", "2", "1"), mutex("c", "3", "2")}, "1-b 2-c 3-a"},
		{"one behind a circle", []*Lock{mutex("a", "1", "2", "9"), mutex("b", "2", "1")}, "1-b 2-a 9-a"},
		{"through a waiter", []*Lock{mutex("a", "1", "2", "3"), mutex("b", "3", "2")}, "2-b 3-a"},
		{"two circles", []*Lock{mutex("a", "1", "2"), mutex("b", "2", "1"), mutex("c", "3", "4"), mutex("d", "4", "3")}, "1-b 2-a 3-d 4-c"},
		{"labels", []*Lock{mutex("a", "1:x", "2:y"), mutex("b", "2:y", "1:x")}, "1-b 2-a"},
		{"other labels", []*Lock{mutex("a", "1:x", "2:y"), mutex("b", "2:y", "1:z")}, ""},
		{"a label that waits for itself", []*Lock{mutex("a", "1:x", "1:x")}, "1-a"},
		{"goroutines of a process", []*Lock{mutex("a", "1", "1", "1")}, ""},
		{"by hand", []*Lock{mutex("a", "0", "2"), mutex("b", "2", "0")}, ""},
		{"readers", []*Lock{queueOf(RWLock, "a", 0, 2, "1r", "2r", "3w"), mutex("b", "3", "1")}, "1-b 3-a"},
		{"a reader behind a writer", []*Lock{queueOf(RWLock, "a", 0, 1, "1r", "2w", "3r"), mutex("b", "3", "2")}, "2-b 3-a"},
		{"readers wait for no readers", []*Lock{queueOf(RWLock, "a", 0, 1, "9w", "1r", "2r"), mutex("b", "2", "1")}, ""},
		{"a semaphore with a free holder", []*Lock{queueOf(Semaphore, "a", 2, 2, "1", "9", "2"), mutex("b", "2", "1")}, ""},
		{"all leases", []*Lock{queueOf(Semaphore, "a", 2, 2, "1", "3", "2"), mutex("b", "2", "1"), mutex("c", "2", "3")},
			"1-b 2-a 3-c"},
		{"too few leases", []*Lock{queueOf(Semaphore, "a", 2, 2, "1", "9", "2*2"), mutex("b", "2", "1")}, "1-b 2-a"},
		{"unknown limit", []*Lock{queueOf(Semaphore, "a", 0, 1, "1", "2"), mutex("b", "2", "1")}, "1-b 2-a"},
		{"a node that goroutines share has no label", []*Lock{mutex("a", "1", "2:y"), mutex("b", "2:y", "1:x")}, "1-b 2-a"},
	} {
		var got []string
		for _, w := range stuck(c.locks) {
			got = append(got, fmt.Sprint(w.Waiter.Session, "-", w.Lock.Path))
		}
		slices.Sort(got)
		got = slices.Compact(got)
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}
