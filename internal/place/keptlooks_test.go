package place

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/internal/watches"
	"github.com/turnstile-go/turnstile/zktest"
)

// Readers that keep a place list again while other readers come and go, but not for ever. A use of their own lets them
// begin to count anew.
func TestKeepLooksAreBounded(t *testing.T) {
	dir := testserver.Path(t)
	p := keeperOf(t, dir, Request{Kind: readKind}, 0, maxKeep)
	others := localOn(t, testserver.Connect(t, testserver.Server(t).Addr(0)), dir, Request{Kind: readKind}, 0, maxKeep)
	p.kept(t)
	before := p.proxy.Count(zktest.On(zktest.OpGetChildren2, dir))
	zktest.Eventually(t, testserver.Patience, "the end of the place", func() bool {
		l, err := others.Acquire(patience(t))
		noError(t, err)
		noError(t, l.Release(patience(t), Unwanted)) // so that it goes
		return p.in() == idle
	})
	if looks := p.proxy.Count(zktest.On(zktest.OpGetChildren2, dir)) - before; looks == 0 || looks > maxLooks {
		t.Errorf("%d listings", looks)
	}
	testserver.WaitChildren(t, dir, 0)
	p.kept(t)
	looks := func() *int { return &p.turn.tenure.looks }
	p.mu.Lock()
	*looks() = maxLooks
	p.mu.Unlock()
	l := p.hold(t)
	p.mu.Lock()
	if n := *looks(); n != 0 {
		t.Errorf("after a use: %d looks", n)
	}
	p.mu.Unlock()
	giveBack(t, l)
}

// A reader that waits for a listing of its process does not say that its process holds: those readers are not in its way.
func TestWaitForLookNamesNobody(t *testing.T) {
	dir := testserver.Path(t)
	p := keeperOf(t, dir, Request{Kind: readKind}, 0, maxKeep)
	others := localOn(t, testserver.Connect(t, testserver.Server(t).Addr(0)), dir, Request{Kind: readKind}, 0, maxKeep)
	mine := p.hold(t)
	tokenOf(t, mine)
	list := p.proxy.HoldRequest(zktest.On(zktest.OpGetChildren2, dir))
	theirs, err := others.Acquire(patience(t))
	noError(t, err)
	<-list.Hit() // by which this process finds out whether a writer has come
	w := p.wait(t, 1)
	w.cancel()
	if g := <-w.done; g.err == nil || strings.Contains(g.err.Error(), "held by") {
		t.Errorf("Acquire: %v", g.err)
	}
	list.Release()
	giveBack(t, theirs)
	giveBack(t, mine)
}

// What a hook, or an observer, gets of a node that is watched is a copy: others go by the data.
func TestKnownIsCopied(t *testing.T) {
	w := watches.Seen([]byte("web-3"), &zk.Stat{EphemeralOwner: 7}, core.WatchPending)
	data, _, _ := knownOf(w)()
	data[0] = 'x'
	if data, owner, ok := knownOf(w)(); string(data) != "web-3" || owner != 7 || !ok {
		t.Errorf("%q, %d, %v", data, owner, ok)
	}
	dir := testserver.Path(t)
	p := newProcess(t, dir, Request{Data: []byte("web-3")}, 1)
	l := p.hold(t)
	for range 2 { // both watch the node, and share what it says
		first, err := p.q.Line(mutexKind).Next(patience(t))
		noError(t, err)
		if string(first.Data) != "web-3" {
			t.Errorf("%q", first.Data)
		}
		first.Data[0] = 'x'
	}
	giveBack(t, l)
}
