package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/wire"
)

func createPart(dir string, data int) *part {
	return newCreatePart(dir, &zk.CreateRequest{Path: dir + "n-", Data: make([]byte, data), Acl: zk.WorldACL(zk.PermAll)})
}

func deletePart(path string) *part {
	return newDeletePart(&zk.DeleteRequest{Path: path, Version: anyVersion})
}

// A batch has at most 16 operations and 16 kB, and one create in a directory.
func TestNextBatch(t *testing.T) {
	creates := func(n, data int) (all []*part) {
		for i := range n {
			all = append(all, createPart(fmt.Sprintf("/d%d/", i), data))
		}
		return all
	}
	for _, c := range []struct {
		name     string
		waiting  []*part
		n        int
		complete bool
	}{
		{"nothing", nil, 0, false},
		{"one", creates(1, 0), 1, false},
		{"one that is too large", creates(1, 100_000), 1, false},
		{"a second after one that is too large", creates(2, 100_000), 1, true},
		{"as many as may be", creates(16, 0), 16, true},
		{"too many", creates(17, 0), 16, true},
		{"too large together", creates(16, 5000), 3, true},
		{"one directory", []*part{createPart("/d/", 0), createPart("/d/", 0)}, 1, true},
		{"a directory again", append(creates(3, 0), createPart("/d1/", 0)), 3, true},
		{"deletes in one directory", []*part{deletePart("/d/1"), deletePart("/d/2"), createPart("/d/", 0), deletePart("/d/3")}, 4, false},
	} {
		if n, complete := nextBatch(c.waiting); n != c.n || complete != c.complete {
			t.Errorf("%s: %d, complete %v, want %d, %v", c.name, n, complete, c.n, c.complete)
		}
	}
}

// The size of a part is no less than what zk.Conn sends for it.
func TestPartSize(t *testing.T) {
	path, data, scheme, id := strings.Repeat("p", 100), strings.Repeat("d", 50), "digest", strings.Repeat("i", 70)
	op := &zk.CreateRequest{Path: path, Data: []byte(data), Acl: []zk.ACL{{Perms: 31, Scheme: scheme, ID: id}}}
	want := 9 + 4 + 100 + 4 + 50 + 4 + (4 + 4 + 6 + 4 + 70) + 4
	if got := newCreatePart("/", op).size; got != want {
		t.Errorf("a create has %d bytes, want %d", got, want)
	}
	if got := deletePart(path).size; got != 9+4+100+4 {
		t.Errorf("a delete has %d bytes", got)
	}
}

func newGroup(from, few int) *group {
	g := &group{when: new(batching)}
	g.when.set(from, few)
	return g
}

// Requests go at once and alone while fewer than 16 are in flight. Then a few batches are under way,
// and what comes meanwhile makes the next ones, in order of arrival.
func TestGroupCommit(t *testing.T) {
	g := newGroup(16, 4)
	for i := range 16 {
		if !g.aloneAtOnce() {
			t.Fatalf("request %d waits", i)
		}
	}
	all := make([]*part, 14)
	senders := 0
	for i := range all {
		if g.aloneAtOnce() {
			t.Fatalf("request %d goes at once", 16+i)
		}
		all[i] = createPart(fmt.Sprintf("/d%d/", i), 0)
		if g.add(all[i]) {
			senders++
		}
		if i >= 4 {
			continue
		}
		if batch, number, another := g.take(); len(batch) != 1 || number != int64(i+1) || another {
			t.Fatalf("batch %d of %d, another %v", number, len(batch), another)
		}
	}
	if senders != 4 || g.flying != 20 {
		t.Fatalf("%d senders, %d in flight", senders, g.flying)
	}
	if !g.withdraw(all[5]) || g.withdraw(all[5]) || g.withdraw(all[0]) {
		t.Error("one that waits could not be withdrawn, or one that does not wait could")
	}
	g.landed(1) // of the first sender, which takes the next
	batch, _, another := g.take()
	if want := slices.Delete(slices.Clone(all[4:]), 1, 2); !slices.Equal(batch, want) || another {
		t.Errorf("a batch of %d, another %v", len(batch), another)
	}
	for range 4 {
		if batch, _, _ := g.take(); batch != nil {
			t.Errorf("a batch of %d when nothing waits", len(batch))
		}
	}
	if g.senders != 0 {
		t.Errorf("%d senders left", g.senders)
	}
}

// What nothing can join any more does not wait.
func TestGroupComplete(t *testing.T) {
	g := newGroup(0, 1)
	senders := 0
	for range 3 {
		if g.add(createPart("/d/", 0)) { // in one directory
			senders++
		}
	}
	if senders < 2 {
		t.Errorf("%d senders for what cannot be sent together", senders)
	}
	for sent := 0; sent < 3; {
		batch, _, another := g.take()
		if len(batch) > 1 {
			t.Fatalf("a batch has %d creates in one directory", len(batch))
		}
		if another {
			senders++
		}
		if len(batch) == 0 {
			senders--
		}
		if senders == 0 {
			t.Fatalf("%d are sent, and no sender is left", sent)
		}
		sent += len(batch)
	}
}

// After a batch has failed, requests go alone for a while: longer after each failure.
func TestGroupCaution(t *testing.T) {
	g := newGroup(0, 1)
	alone := func() (n int) {
		for g.aloneAtOnce() {
			n++
		}
		return n
	}
	for _, want := range []int{16, 32, 64} {
		g.failed()
		if n := alone(); n != want {
			t.Errorf("%d go alone, want %d", n, want)
		}
	}
	for range 3 {
		g.succeeded()
	}
	g.failed()
	if n := alone(); n != 16 {
		t.Errorf("after some have succeeded %d go alone", n)
	}
	for range 20 {
		g.failed()
	}
	if n := alone(); n != 1024 {
		t.Errorf("at most %d go alone", n)
	}
	g.failed()
	for range 3 {
		g.add(createPart("/d/", 0))
	}
	if batch, _, _ := g.take(); len(batch) != 1 {
		t.Errorf("a batch of %d after a failure", len(batch))
	}
}

// A request of several callers is never taken for one that the server refuses for its length: the callers would fail
// for each other, and deletes would not be tried again.
func TestRequestsOfSeveralAreNotSuspicious(t *testing.T) {
	const overhead = 1 << 10 // lengths and heads
	if longest := max(batchBytes, watchedBytes) + overhead; longest >= wire.SuspiciousLength {
		t.Errorf("a batch or setWatches can have %d bytes; from %d on a request is suspicious", longest, wire.SuspiciousLength)
	}
}
