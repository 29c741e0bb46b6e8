package zktest

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

var (
	conformanceSeed = flag.Uint64("conformance.seed", 0, "run only this sequence of TestConformance; 0: several, by the time")
	conformanceRuns = flag.Int("conformance.runs", 0, "how many sequences TestConformance runs; 0: a few")
)

// pair is an in-process server and a real one, which get the same requests.
type pair struct{ ours, real func() (net.Conn, error) }

func newPair(t *testing.T) pair {
	real := StartReal(t, ContainerCheck(time.Hour))
	ours := Start(t, versionOf(t, real), TickTime(500*time.Millisecond), MinSessionTimeout(time.Second), MaxSessionTimeout(time.Minute), ContainerCheck(time.Hour))
	dial := ours.Dialer()
	return pair{
		ours: func() (net.Conn, error) { return dial(context.Background(), "tcp", "anywhere") },
		real: func() (net.Conn, error) { return net.Dial("tcp", real.Addr(0)) },
	}
}

// versionOf has a server imitate the version of a real one.
func versionOf(t *testing.T, real *Ensemble) Option {
	t.Helper()
	text, err := real.Word(t.Context(), 0, "srvr")
	if err != nil {
		t.Fatal(err)
	}
	_, number, _ := strings.Cut(text, "Zookeeper version: ")
	number, _, _ = strings.Cut(number, "-")
	var major, minor, patch int
	if _, err := fmt.Sscanf(number, "%d.%d.%d", &major, &minor, &patch); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	imitated, ok := znode.Releases[fmt.Sprintf("%d.%d", major, minor)]
	if !ok {
		t.Fatalf("a version that is not imitated: %s", text)
	}
	t.Logf("%s is held against %s", imitated.Number, number)
	// Releases of a line differ in little.
	imitated.Number = number
	imitated.RewatchNeedsRead = imitated.RewatchNeedsRead && patch >= 6
	return option(func(c *config) error { c.Release = imitated; return nil })
}

// run runs a step and returns everything that the clients receive.
func (w *world) run(s step) (heard []string) {
	c := w.clients[s.who]
	switch s.what {
	case stepRequest:
		events, reply := c.roundTrip(s.op, s.body(w.base))
		heard = append(heard, c.report(events)...)
		heard = append(heard, c.label+" "+reply)
		if strings.HasSuffix(reply, "closed") || connectionEnds(s.op, reply) {
			heard = append(heard, c.reattach(handshake{}))
		}
	case stepReconnect:
		c.leave()
		heard = append(heard, c.reattach(s.hand))
	case stepReplace:
		old, in := c.conn, c.in
		heard = append(heard, c.reattach(s.hand))
		if _, err := readFrame(in); err == nil {
			heard = append(heard, "the old connection is there still")
		}
		_ = old.Close()
	case stepClose:
		events, reply := c.roundTrip(OpClose, nil)
		heard = append(heard, c.report(sorted(events))...)
		heard = append(heard, c.label+" "+reply)
		_ = c.conn.Close()
		heard = append(heard, c.reattach(handshake{}))
	}
	for _, other := range w.clients {
		events, reply := other.roundTrip(OpPing, nil)
		if s.what == stepClose {
			sorted(events) // the nodes of a session go in no order
		}
		heard = append(heard, other.report(events)...)
		heard = append(heard, other.label+" ping "+reply)
	}
	return heard
}

func (c *rawClient) report(events []string) []string {
	all := make([]string, len(events))
	for i, e := range events {
		all[i] = c.label + " " + e
	}
	return all
}

// leave closes the connection and waits until the server has closed it, too. ZooKeeper may otherwise
// take the end of this connection for that of the next one.
func (c *rawClient) leave() {
	if tcp, ok := c.conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
		_, _ = io.Copy(io.Discard, c.in)
	}
	_ = c.conn.Close()
}

// connectionEnds reports whether the server closes the connection after this reply.
func connectionEnds(op Op, reply string) bool {
	return op == 77 || strings.Contains(reply, znode.CodeAuthFailed.Error())
}

// reattach connects again, with a new session if the old one is over. It returns the outcome of each attempt.
func (c *rawClient) reattach(h handshake) string {
	said := ""
	for range 3 {
		c.open()
		reply := c.handshake(h)
		said += c.label + " handshake " + reply + "; "
		if strings.HasPrefix(reply, "session") {
			return said
		}
		_ = c.conn.Close()
		if strings.HasPrefix(reply, "refused") && !h.badPassword {
			c.session, c.password = 0, nil
		}
		h = handshake{}
	}
	c.w.t.Fatalf("no way back: %s", said)
	return said
}

// compare runs the same steps on both servers and fails at the first difference.
func compare(t *testing.T, servers pair, clients int, steps []step) {
	t.Helper()
	ours, real := newWorld(t, servers.ours), newWorld(t, servers.real)
	for _, w := range []*world{ours, real} {
		for range clients {
			w.join()
		}
		w.clients[0].roundTrip(OpPing, nil)
		w.base = w.clients[0].seen
		// The base must be known before anything relative to it.
	}
	for i, s := range steps {
		got, want := ours.run(s), real.run(s)
		if slices.Equal(got, want) {
			continue
		}
		var b strings.Builder
		for j, done := range steps[:i+1] {
			fmt.Fprintf(&b, "%3d %v\n", j, done)
		}
		t.Fatalf("after\n%sours:\n\t%s\nreal:\n\t%s", b.String(), strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
	for _, w := range []*world{ours, real} {
		for _, c := range w.clients { // so that no session expires meanwhile
			c.roundTrip(OpClose, nil)
		}
	}
}

// The in-process server answers random requests of several clients as a real one does. A failure prints
// the seed: run it again with -conformance.seed.
func TestConformance(t *testing.T) {
	servers := newPair(t)
	first, runs := uint64(time.Now().UnixNano()), longtest.Pick(5, 40)
	if *conformanceRuns > 0 {
		runs = *conformanceRuns
	}
	if *conformanceSeed != 0 {
		first, runs = *conformanceSeed, 1
	}
	for seed := first; seed < first+uint64(runs) && !t.Failed(); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			g := newGenerator(seed)
			clients := 1 + g.IntN(3)
			compare(t, servers, clients, g.sequence(clients))
		})
	}
}
