package interop_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// client is one contender.
type client struct {
	language string
	kind     string
}

// contest is 20 clients of several languages that contend for one lock.
type contest struct {
	clients []client // in the order in which they ask first
	first   int      // of them, how many are let in together at first
	leases  int      // how many may share it, if it is a semaphore
	visits  int      // by each client
}

const contenders = 20

// inTurn repeats clients until there are enough of them.
func inTurn(clients ...client) []client {
	all := make([]client, contenders)
	for i := range all {
		all[i] = clients[i%len(clients)]
	}
	return all
}

// languages are how to get a crew for each.
var languages = map[string]func(*testing.T, *site) crew{"go": newGo, "java": newJava, "python": newPython}

// run has the clients ask for the lock one by one while none of them leaves. Then all go on as fast as
// they can.
func (c contest) run(t *testing.T) {
	t.Parallel()
	s := newSite(t, c.leases)
	crews := c.crews(t, s)
	for i, cl := range c.clients {
		crews[cl.language].enter(t, nameOf(i, cl), cl.kind, c.visits)
		c.waitQueued(t, s, i+1)
	}
	if in := inside(s.events(t)); len(in) != c.first {
		t.Errorf("inside at first: %v, want %d", in, c.first)
	}
	s.open(t)
	for language, crew := range crews {
		if err := crew.finish(); err != nil {
			t.Errorf("%s: %v", language, err)
		}
	}
	c.check(t, s)
}

func nameOf(i int, cl client) string { return fmt.Sprintf("%02d-%s-%s", i, cl.language, cl.kind) }

// crews returns the crews that the clients need.
func (c contest) crews(t *testing.T, s *site) map[string]crew {
	t.Helper()
	crews := make(map[string]crew)
	for _, cl := range c.clients {
		if crews[cl.language] == nil {
			crews[cl.language] = languages[cl.language](t, s)
		}
	}
	return crews
}

// waitQueued waits until n clients have asked.
func (c contest) waitQueued(t *testing.T, s *site, n int) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, fmt.Sprint(n, " clients in the queue, and those inside who may be"), func() bool {
		return len(inside(s.events(t))) == min(n, c.first) && c.queued(t, s) == n
	})
}

// queued returns how many clients have asked and not left.
func (c contest) queued(t *testing.T, s *site) int {
	if c.leases == 0 {
		return len(testserver.Children(t, s.path))
	}
	// Curator's semaphore: the waiters for the mutex, of which the first may have made its
	// lease already, and the leases.
	leases := len(testserver.Children(t, s.path+"/leases"))
	locks := len(testserver.Children(t, s.path+"/locks"))
	if leases > c.leases {
		locks--
	}
	return leases + locks
}

func (c contest) check(t *testing.T, s *site) {
	t.Helper()
	events := s.events(t)
	most := c.leases
	if most == 0 {
		most = math.MaxInt
	}
	entries, fouls := replay(events, most)
	if want := len(c.clients) * c.visits; len(fouls) > 0 || entries != want {
		t.Errorf("%d entries, want %d, and %d fouls, such as %q", entries, want, len(fouls), fouls[:min(5, len(fouls))])
	}
	if c.leases == 0 {
		c.checkOrder(t, events)
	}
}

// checkOrder checks the first visits: of two clients that exclude each other, the one that asked first
// was first.
func (c contest) checkOrder(t *testing.T, events []event) {
	t.Helper()
	mode := make(map[string]string)
	for _, e := range events {
		mode[e.client] = e.mode
	}
	for i := range c.clients {
		later := nameOf(i, c.clients[i])
		enters, _ := firstVisit(events, later)
		for j := range i {
			earlier := nameOf(j, c.clients[j])
			_, left := firstVisit(events, earlier)
			if (mode[earlier] == exclusive || mode[later] == exclusive) && left > enters {
				t.Errorf("%s, who asked before %s, was overtaken", earlier, later)
			}
		}
	}
}

var must = expect.NoError

func finish(t *testing.T, crews ...crew) {
	t.Helper()
	for _, c := range crews {
		if err := c.finish(); err != nil {
			t.Error(err)
		}
	}
}

// watchers returns the sessions that watch a node.
func watchers(t *testing.T, node string) map[int64]bool {
	t.Helper()
	text, err := testserver.Server(t).Word(t.Context(), 0, "wchp")
	must(t, err)
	sessions := make(map[int64]bool)
	for line := range strings.Lines(after(text, node+"\n")) { // sessions, indented, then other paths
		id, err := strconv.ParseInt(strings.TrimSpace(line), 0, 64)
		if err != nil {
			break
		}
		sessions[id] = true
	}
	return sessions
}

func after(text, what string) string {
	_, rest, _ := strings.Cut(text, what)
	return rest
}
