package hold

import (
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// Readers that keep a place list again while other readers come and go, but not for ever. A use of their own lets them
// begin to count anew.
func TestKeepLooksAreBounded(t *testing.T) {
	dir := testserver.Path(t)
	p := keeperOf(t, dir, place.Request{Kind: readKind}, 0, maxKeep)
	others := localOn(t, testserver.Connect(t, testserver.Server(t).Addr(0)), dir, place.Request{Kind: readKind}, 0, maxKeep)
	p.kept(t)
	before := p.proxy.Count(zktest.On(zktest.OpGetChildren2, dir))
	zktest.Eventually(t, testserver.Patience, "the end of the place", func() bool {
		l, err := others.Acquire(expect.Patient(t))
		expect.NoError(t, err)
		expect.NoError(t, l.Release(expect.Patient(t), place.Unwanted)) // so that it goes
		return p.in() == idle
	})
	if looks := p.proxy.Count(zktest.On(zktest.OpGetChildren2, dir)) - before; looks == 0 || looks > maxLooks {
		t.Errorf("%d listings", looks)
	}
	testserver.WaitChildren(t, dir, 0)
	p.kept(t)
	looks := func() *int { return &p.turn.looks }
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
	p := keeperOf(t, dir, place.Request{Kind: readKind}, 0, maxKeep)
	others := localOn(t, testserver.Connect(t, testserver.Server(t).Addr(0)), dir, place.Request{Kind: readKind}, 0, maxKeep)
	mine := p.hold(t)
	tokenOf(t, mine)
	list := p.proxy.HoldRequest(zktest.On(zktest.OpGetChildren2, dir))
	theirs, err := others.Acquire(expect.Patient(t))
	expect.NoError(t, err)
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
