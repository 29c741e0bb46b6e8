package semaphore_test

import (
	"path"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// A request for several leases is one node, whose name has the number.
func TestOneNodeForAll(t *testing.T) {
	s := newSem(t, connect(t), testserver.Path(t), 5)
	l := take(t, s, 3)
	n, ok := queue.ParseNode(path.Base(l.Path()))
	if !ok || n.Weight != 3 || n.Prefix != queue.PrefixLease || !strings.Contains(l.Path(), "-x3-lease-") {
		t.Errorf("node %s: %+v", l.Path(), n)
	}
	testserver.WaitChildren(t, s.Path(), 1)
	busy(t, s, 3)
	rest := take(t, s, 2)
	release(t, l, rest)
	testserver.WaitChildren(t, s.Path(), 0)
}

// A request for more leases than the limit in force is refused at once, whatever New was given. It reads the limit and
// creates no node, so it keeps out no other contender.
func TestMoreThanThereAre(t *testing.T) {
	dir := testserver.Path(t)
	proxy := testserver.Proxy(t)
	m := behind(t, proxy)
	testserver.Session(t, m)
	holder := newSem(t, connect(t), dir, 3)
	held := take(t, holder, 2)
	greedy := newSem(t, m, dir, 3)
	proxy.ResetRequests()
	_, err := greedy.AcquireN(patient(t), 4)
	wantErr(t, "AcquireN of 4 of 3", err, session.ErrInvalid)
	wantText(t, err, "4 leases: the limit is 3")
	if n, writes := proxy.Count(under(dir)), proxy.Count(writes(dir)); n != 1 || writes != 0 {
		t.Errorf("%d requests, %d writes", n, writes)
	}
	must(t, holder.Resize(patient(t), 6))
	release(t, held, take(t, holder, 1), take(t, greedy, 3))
	release(t, take(t, greedy, 4))
}
