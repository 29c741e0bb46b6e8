package faultmatrix

import (
	"fmt"
	"strings"
	"sync"

	"github.com/turnstile-go/turnstile/zktest"
)

// step is one request of a trace, or the event of a watch. It is named by what is the same in every
// run: the n-th of its kind. The moments in which nothing is on its way are steps, too.
type step struct {
	op    zktest.Op
	where string
	n     int // from 1; 0 for a moment
}

// The moments.
var (
	whileWaiting = step{where: "while-waiting"} // all watches are set, and the first holds
	whileHolding = step{where: "while-holding"} // with the rival behind
)

func (s step) isMoment() bool { return s.n == 0 }

func (s step) String() string {
	if s.isMoment() {
		return s.where
	}
	text := s.op.String() + "-" + s.where
	if s.n > 1 {
		text += fmt.Sprintf("-again%d", s.n-1)
	}
	return text
}

// steps finds the step of each request. Heartbeats are no steps: they come by the clock, and neither are
// handshakes.
type steps struct {
	base string // the lock's path

	mu   sync.Mutex
	own  map[string]bool // the ids in the names of nodes that the client has asked for
	seen map[step]int
}

func (c *cell) newSteps() *steps {
	return &steps{base: c.base, own: make(map[string]bool), seen: make(map[step]int)}
}

// next must be called once for each request, in their order.
func (s *steps) next(r zktest.Request) (step, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	where, ok := s.where(r)
	if !ok {
		return step{}, false
	}
	kind := step{op: r.Op, where: where}
	s.seen[kind]++
	kind.n = s.seen[kind]
	return kind, true
}

// where says what a request's path is to the client: "dir", "own", "other", or "node" where all
// have the same name; below the path of the lock, with the directory before it.
func (s *steps) where(r zktest.Request) (string, bool) {
	if r.Op == zktest.OpClose {
		return "session", true
	}
	rest, ok := strings.CutPrefix(r.Path, s.base)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	words := strings.Split(strings.TrimPrefix(rest, "/"), "/")
	last := &words[len(words)-1]
	switch id, isNode := contenderID(*last); {
	case *last == "":
		*last = "dir"
	case strings.HasPrefix(*last, raising): // it ends in a uuid
		*last = "raise"
	case !isNode:
		words = append(words, "dir")
	case id == "":
		*last = "node"
	case r.Op == zktest.OpCreate || r.Op == zktest.OpMulti && strings.HasSuffix(*last, "-") || s.own[id]:
		s.own[id] = true
		*last = "own"
	case r.Op == zktest.OpMulti: // of a transaction only the first path is known, so the id can be new
		*last = "own"
	default:
		*last = "other"
	}
	return strings.Join(words, "-"), true
}

// raising begins the name of the node that stands while a semaphore's limit is raised.
const raising = "resize-"

// contenderID returns the uuid in a contender's name, with its number or, as in a create,
// still without; "" if such names have none.
func contenderID(name string) (id string, isNode bool) {
	const uuid = 36
	if rest, ok := strings.CutPrefix(name, "_c_"); ok && len(rest) > uuid {
		return rest[:uuid], true
	}
	return "", false
}

// record notes all steps of ours from now on.
func (c *cell) record() (recorded func() []step) {
	var mu sync.Mutex
	var all []step
	s := c.newSteps()
	note := func(r zktest.Request) bool {
		if st, ok := s.next(r); ok {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, st)
		}
		return false // it only looks
	}
	c.proxy.HoldRequest(note)
	c.proxy.HoldReply(func(r zktest.Request) bool { return r.Op == zktest.OpNotification && note(r) })
	return func() []step {
		mu.Lock()
		defer mu.Unlock()
		return append([]step(nil), all...)
	}
}
