package place

import (
	"context"
	"errors"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// behind returns an attempt in a session of p that waits for a lock that another process holds.
func (p *process) behind(t *testing.T) *attempt {
	t.Helper()
	r := Request{Kind: mutexKind}
	noError(t, r.complete())
	a := newAttempt(p.q, (*core.Session)(testserver.Session(t, p.m)), &r, &entry{})
	if err := a.run(patience(t)); !errors.Is(err, errAhead) {
		t.Fatalf("the attempt does not wait: %v", err)
	}
	return a
}

// ended waits until a watch has ended.
func ended(t *testing.T, w *core.Watch) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "the watch to tell", func() bool { return !stands(w) })
}

// watchAgain returns what a watch on the node ahead is when another contender of the session sets one.
func (p *process) watchAgain(t *testing.T, a *attempt) *core.Watch {
	t.Helper()
	all, err := a.s.StartWatches(patience(t), path.Join(p.q.dir, a.view.targets[0].node.Name))
	noError(t, err)
	return all[0]
}

// leaves has the attempt find that its context has ended.
func (p *process) leaves(t *testing.T, a *attempt) {
	t.Helper()
	ctx, cancel := context.WithCancel(patience(t))
	cancel()
	if err := a.run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("the attempt goes on: %v", err)
	}
}

// givesBack has the attempt leave. The session keeps the watch for another contender that shares it, and no longer.
func (p *process) givesBack(t *testing.T, a *attempt) {
	t.Helper()
	w := a.view.watches[0]
	if p.watchAgain(t, a) != w {
		t.Error("the session forgets a watch in use")
	}
	p.leaves(t, a)
	if p.watchAgain(t, a) != w {
		t.Error("the session forgets a watch that another contender shares")
	}
	for range 2 { // what watchAgain has returned
		a.s.GiveBack(path.Join(p.q.dir, a.view.targets[0].node.Name), w)
	}
	if p.watchAgain(t, a) == w {
		t.Error("the session does not forget a watch that all have given back")
	}
}

// An attempt that has left gives back its watches, whose end the server may never tell.
func TestWatchesAreGivenBack(t *testing.T) {
	p := newProcess(t, testserver.Path(t), Request{}, 1)
	holder := newProcess(t, p.q.dir, Request{}, 1).hold(t)
	p.givesBack(t, p.behind(t))
	testserver.WaitChildren(t, p.q.dir, 1)
	giveBack(t, holder)
}

// The next wait of an attempt takes over the watches that are pending. They are given back once.
func TestWatchesAreTakenOver(t *testing.T) {
	p := newProcess(t, testserver.Path(t), Request{}, 1)
	holder := newProcess(t, p.q.dir, Request{}, 1).hold(t)
	a := p.behind(t)
	w, own := a.view.watches[0], a.own
	<-own.Set()
	_, err := testserver.Admin(t).Set(a.path, nil, -1)
	noError(t, err)
	ended(t, own)
	if err := a.run(patience(t)); !errors.Is(err, errAhead) {
		t.Fatalf("the attempt does not wait: %v", err)
	}
	if a.own == own || a.view.watches[0] != w {
		t.Error("the watch ahead is not the same, or that on the own node is")
	}
	p.givesBack(t, a)
	testserver.WaitChildren(t, p.q.dir, 1)
	giveBack(t, holder)
}

// A node goes that the client may not read, and nobody tells. The check finds it out, and the watch does not stay.
func TestWatchOfUnreadableNodeIsForgotten(t *testing.T) {
	p := newProcess(t, oldDir(t, 0), Request{}, 1)
	unreadable := session.WithACL(zk.WorldACL(zk.PermAll &^ zk.PermRead)...)
	holder := newProcess(t, p.q.dir, Request{}, 1, unreadable).hold(t)
	a := p.behind(t)
	w, node := a.view.watches[0], path.Join(p.q.dir, a.view.targets[0].node.Name)
	<-w.Set() // or it would tell that the node is gone already
	giveBack(t, holder)
	a.waiting.asks = false // the timer is that of the check after a session timeout
	a.waiting.ring(a.wake)
	noError(t, a.run(patience(t)))
	again, err := a.s.StartWatches(patience(t), node)
	noError(t, err)
	// ZooKeeper 3.4 does tell.
	if event := w.Event(); again[0] == w || event != core.WatchBroken && event != core.WatchDeleted {
		t.Errorf("the watch on the node that is gone has stayed: %v", event)
	}
	giveBack(t, a.hold(patience(t)))
}

// The watch on a node that has gone untold is given back when a listing shows that the turn has come.
func TestWatchIsGivenBackAtGrant(t *testing.T) {
	p := newProcess(t, oldDir(t, 0), Request{}, 1)
	unreadable := session.WithACL(zk.WorldACL(zk.PermAll &^ zk.PermRead)...)
	holder := newProcess(t, p.q.dir, Request{}, 1, unreadable).hold(t)
	a := p.behind(t)
	w, node := a.view.watches[0], path.Join(p.q.dir, a.view.targets[0].node.Name)
	<-a.own.Set()
	giveBack(t, holder)
	_, err := testserver.Admin(t).Set(a.path, nil, -1) // so that it lists
	noError(t, err)
	ended(t, a.own)
	noError(t, a.run(patience(t)))
	again, err := a.s.StartWatches(patience(t), node)
	noError(t, err)
	if again[0] == w {
		t.Error("the watch on the node that is gone has stayed")
	}
	giveBack(t, a.hold(patience(t)))
}

// The contender of a Local has lost its place, and the next one has not listed yet. Until then nobody can say who is
// ahead: nothing tells the last view any more when that node goes.
func TestLostPlaceLeavesNoView(t *testing.T) {
	p := newProcess(t, testserver.Path(t), Request{}, 1)
	holder := newProcess(t, p.q.dir, Request{}, 1).hold(t)
	var shown atomic.Pointer[view]
	a := p.behind(t)
	a.entry.view = &shown
	a.show(a.view)
	<-a.own.Set()
	testserver.Delete(t, a.path)
	ended(t, a.own)
	if err := a.run(patience(t)); !errors.Is(err, errDeleted) {
		t.Fatalf("the attempt has its node: %v", err)
	}
	giveBack(t, holder)
	if why := p.q.why(shown.Load(), time.Now()); why != "" {
		t.Errorf("nobody holds, but: %q", why)
	}
}

// The timer of a wait runs in the moment in which the turn comes. The attempt goes without a request: a check of
// the nodes would delay it, and fail it if the server did not answer.
func TestTurnComesBeforeCheck(t *testing.T) {
	p := newProcess(t, testserver.Path(t), Request{}, 1)
	holder := newProcess(t, p.q.dir, Request{}, 1).hold(t)
	a := p.behind(t)
	giveBack(t, holder)
	ended(t, a.view.watches[0])
	a.waiting.asks = false // the timer is that of the check after a session timeout
	a.waiting.ring(a.wake)
	p.proxy.ResetRequests()
	noError(t, a.run(patience(t)))
	if n := p.proxy.Count(func(r zktest.Request) bool { return strings.HasPrefix(r.Path, p.q.dir) }); n > 0 {
		t.Errorf("the attempt has sent %d requests, though its turn had come", n)
	}
	giveBack(t, a.hold(patience(t)))
}
