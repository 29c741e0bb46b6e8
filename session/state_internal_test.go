package session

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
)

func TestCanFollow(t *testing.T) {
	next := map[State][]State{
		Connecting: {Connected, Closed},
		Connected:  {Suspended, Lost, Closed},
		Suspended:  {Connected, Lost, Closed},
		Lost:       {Connecting, Closed},
		Closed:     nil,
	}
	for from := Connecting; from <= Closed+1; from++ {
		for to := Connecting; to <= Closed; to++ {
			if from > Closed && to == Closed {
				continue
			}
			if got, want := canFollow(from, to), slices.Contains(next[from], to); got != want {
				t.Errorf("%v to %v: %v, want %v", from, to, got, want)
			}
		}
	}
}

func TestSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ss subscribers
		block := make(chan struct{})
		var slow, fast, late, first []State
		ss.add(func(c Change) { <-block; slow = append(slow, c.To) }, nil)
		ss.add(func(c Change) { fast = append(fast, c.To) }, nil)
		cancel := ss.add(func(c Change) { late = append(late, c.To) }, nil)
		ss.add(func(c Change) { first = append(first, c.To) }, &Change{To: Connecting})
		all := []State{Connected, Suspended, Connected, Lost, Connecting}
		for i, s := range all {
			if i == 2 {
				synctest.Wait()
				cancel()
			}
			ss.publish(Change{To: s})
		}
		synctest.Wait()
		if !slices.Equal(fast, all) {
			t.Errorf("behind a slow one: %v, want %v", fast, all)
		}
		if !slices.Equal(late, all[:2]) {
			t.Errorf("cancelled after two: %v", late)
		}
		if want := append([]State{Connecting}, all...); !slices.Equal(first, want) {
			t.Errorf("with a first: %v, want %v", first, want)
		}
		ss.finish()
		ss.publish(Change{To: Closed})
		close(block)
		synctest.Wait() // and the bubble ends only if their goroutines have
		if !slices.Equal(slow, all) {
			t.Errorf("the slow one, at the end: %v, want %v", slow, all)
		}
		cancel()
	})
}

// A subscriber that cancels during a call gets no further call.
func TestSubscriberCancelledDuringCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ss subscribers
		block := make(chan struct{})
		told := 0
		cancel := ss.add(func(Change) { told++; <-block }, nil)
		for range 3 {
			ss.publish(Change{To: Connected})
		}
		synctest.Wait()
		cancel()
		close(block)
		synctest.Wait()
		if told != 1 {
			t.Errorf("told %d times, want once", told)
		}
	})
}

func TestNodes(t *testing.T) {
	n := nodes{limit: 3, most: 1000}
	for i := range 3 {
		if err := n.reserve(6); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	refused := func(when string) {
		t.Helper()
		if err := n.reserve(6); err != ErrTooManyNodes {
			t.Errorf("%s: %v, want ErrTooManyNodes", when, err)
		}
	}
	refused("three pending")
	n.settle(6, "/a", nil)
	n.settle(6, "/b", nil)
	refused("two made, one pending")
	n.settle(6, "", ErrTooManyNodes) // refused by the server
	n.found("/c")
	n.found("/c") // counted once
	refused("two made, one found")
	n.deleted("/never", n.noted("/never"))
	n.deleted("/a", n.noted("/a"))
	n.deleted("/a", n.noted("/a"))
	if err := n.reserve(6); err != nil {
		t.Errorf("after a delete: %v", err)
	}
	refused("full again")
}

// The bytes are those of the whole paths, and of the nodes that are asked for.
func TestNodeBytes(t *testing.T) {
	n := nodes{limit: 100, most: 3 * (4 + 5 + 6), chroot: 5} // room for three paths of six bytes
	size := n.sizeOfNew("/dir/x", Ephemeral)
	if more := n.sizeOfNew("/dir/x", EphemeralSequential); more != size+sequenceDigits {
		t.Errorf("a sequential node has %d bytes, and another %d", more, size)
	}
	refused := func(when string, size int) {
		t.Helper()
		if err := n.reserve(size); !errors.Is(err, ErrTooManyNodes) || !strings.Contains(err.Error(), "WithMaxNodeBytes") {
			t.Errorf("%s: %v, want ErrTooManyNodes for the bytes", when, err)
		}
	}
	for range 3 {
		if err := n.reserve(size); err != nil {
			t.Fatal(err)
		}
	}
	refused("three asked for", 1)
	n.release(size)
	n.settle(size, "/dir/a", nil)
	n.settle(size, "", zk.ErrNoAuth)
	refused("one made, one byte too many", 2*size+1)
	n.found("/dir/b")
	n.found("/dir/b") // counted once
	refused("one made, one found", size+1)
	n.deleted("/dir/a", n.noted("/dir/a"))
	n.deleted("/dir/a", n.noted("/dir/a"))
	if err := n.reserve(2 * size); err != nil {
		t.Errorf("after a delete: %v", err)
	}
	n.release(2 * size)
	n.deleted("/dir/b", n.noted("/dir/b"))
	if n.bytes != 0 || n.asked != 0 {
		t.Errorf("%d bytes of nodes and %d asked for are left", n.bytes, n.asked)
	}
}

// The strict rules of the clock hold while the session has a node, or may have one.
func TestNodesAny(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(n *nodes)
		want bool
	}{
		"none":                    {func(*nodes) {}, false},
		"one asked for":           {func(n *nodes) { _ = n.reserve(6) }, true},
		"one refused":             {func(n *nodes) { _ = n.reserve(6); n.settle(6, "", zk.ErrNoAuth) }, false},
		"one made":                {func(n *nodes) { _ = n.reserve(6); n.settle(6, "/a", nil) }, true},
		"one deleted":             {func(n *nodes) { _ = n.reserve(6); n.settle(6, "/a", nil); n.deleted("/a", n.noted("/a")) }, false},
		"one whose reply is lost": {func(n *nodes) { _ = n.reserve(6); n.settle(6, "", zk.ErrConnectionClosed) }, true},
	} {
		n := nodes{limit: 3, most: 1000, timeout: func() time.Duration { return time.Second }}
		if c.do(&n); n.any(time.Now()) != c.want {
			t.Errorf("%s: any is not %v", name, c.want)
		}
		if name == "one whose reply is lost" && n.any(time.Now().Add(3*time.Second)) {
			t.Errorf("%s: any for ever", name)
		}
	}
}
