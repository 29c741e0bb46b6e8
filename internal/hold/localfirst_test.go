package hold

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The first Acquire of an idle Local contends in its own goroutine. These tests have another one wait behind
// it before it knows whether it has to wait.

// first begins an Acquire whose listing is held up, and another one behind it.
func (p *process) first(t *testing.T, dir string) (one, two *waits, listing *zktest.Fault) {
	t.Helper()
	listing = p.proxy.HoldRequest(zktest.On(zktest.OpGetChildren2, dir))
	one = p.begin(expect.Patient(t))
	<-listing.Hit()
	if s := p.in(); s != trying {
		t.Errorf("state %v", s)
	}
	return one, p.wait(t, 1), listing
}

// It gets the lock, and hands it on.
func TestLocalFirstGranted(t *testing.T) {
	dir := testserver.Path(t)
	p := newProcess(t, dir, place.Request{}, 1)
	giveBack(t, p.hold(t)) // so that there is a directory
	one, two, listing := p.first(t, dir)
	listing.Release()
	l := one.lease(t)
	place := l.Path()
	giveBack(t, l)
	next := two.lease(t)
	if next.Path() != place {
		t.Errorf("the lock was not handed on: %s and then %s", place, next.Path())
	}
	giveBack(t, next)
	testserver.WaitChildren(t, dir, 0)
}

// It has to wait. Then its node is that of the other one, too, and stays when it gives up.
func TestLocalFirstWaits(t *testing.T) {
	dir := testserver.Path(t)
	h := newProcess(t, dir, place.Request{}, 1).hold(t)
	p := newProcess(t, dir, place.Request{}, 1)
	one, two, listing := p.first(t, dir)
	testserver.WaitChildren(t, dir, 2)
	names := testserver.Children(t, dir)
	listing.Release()
	p.settle(t, 2)
	if s := p.in(); s != contending {
		t.Errorf("state %v", s)
	}
	one.cancel()
	one.fails(t, context.Canceled)
	giveBack(t, h)
	l := two.lease(t)
	if !slices.Contains(names, path.Base(l.Path())) {
		t.Errorf("%s is none of %v", l.Path(), names)
	}
	giveBack(t, l)
	testserver.WaitChildren(t, dir, 0)
}

// It gives up before it knows. The other one contends.
func TestLocalFirstGivesUp(t *testing.T) {
	dir := testserver.Path(t)
	p := newProcess(t, dir, place.Request{}, 1)
	giveBack(t, p.hold(t))
	one, two, listing := p.first(t, dir)
	one.cancel()
	one.fails(t, context.Canceled)
	listing.Release()
	giveBack(t, two.lease(t))
	testserver.WaitChildren(t, dir, 0)
}

// It gives up before it knows, and the session has room for one node only. The other one waits until that
// of the first is gone.
func TestLocalFirstGivesUpAtLimit(t *testing.T) {
	dir := testserver.Path(t)
	h := newProcess(t, dir, place.Request{}, 1).hold(t)
	p := newProcess(t, dir, place.Request{}, 1, session.WithMaxNodes(1))
	one, two, listing := p.first(t, dir)
	gone := p.proxy.HoldRequest(zktest.On(zktest.OpDelete, dir+"/"))
	one.cancel()
	one.fails(t, context.Canceled)
	listing.Release()
	<-gone.Hit()
	gone.Release()
	testserver.WaitChildren(t, dir, 2)
	giveBack(t, h)
	giveBack(t, two.lease(t))
	testserver.WaitChildren(t, dir, 0)
}

// There is no connection. The other one says so if its context ends.
func TestLocalFirstWhy(t *testing.T) {
	dir := testserver.Path(t)
	p := newProcess(t, dir, place.Request{}, 1)
	giveBack(t, p.hold(t))
	p.proxy.Refuse(true)
	p.proxy.Disconnect()
	zktest.Eventually(t, testserver.Patience, "the end of the connection", func() bool { return p.m.State() != session.Connected })
	one := p.begin(expect.Patient(t))
	zktest.Eventually(t, testserver.Patience, "the first", func() bool { return p.in() == trying })
	two := p.wait(t, 1)
	two.cancel()
	g := <-two.done
	if !errors.Is(g.err, context.Canceled) || !strings.Contains(g.err.Error(), "not connected") {
		t.Errorf("the other one's error: %v", g.err)
	}
	p.proxy.Refuse(false)
	giveBack(t, one.lease(t))
}

// Its session is lost. Both go on in the next one.
func TestLocalFirstLoss(t *testing.T) {
	dir := testserver.Path(t)
	p := newProcess(t, dir, place.Request{}, 1)
	giveBack(t, p.hold(t))
	one, two, listing := p.first(t, dir)
	expect.NoError(t, p.proxy.Expire(expect.Patient(t), testserver.Session(t, p.m).ID()))
	listing.Release()
	l := one.lease(t)
	giveBack(t, l)
	giveBack(t, two.lease(t))
	testserver.WaitChildren(t, dir, 0)
}

// Its policy panics, in the goroutine that has called Acquire. The next one contends.
func TestLocalFirstPanics(t *testing.T) {
	dir := testserver.Path(t)
	policy := errors.New("a policy panics")
	armed := true
	q, err := place.New((*core.Manager)(testserver.Connect(t, testserver.Server(t).Addr(0))), dir)
	expect.NoError(t, err)
	local, err := NewLocal(q, place.Request{Kind: &kinds.Kind{Name: "mutex", Prefixes: []string{kinds.PrefixLock}, Policy: func(kinds.Node) kinds.Policy {
		if armed {
			armed = false
			panic(policy)
		}
		return kinds.Policy{}
	}}}, LocalConfig{Handovers: 1})
	expect.NoError(t, err)
	func() {
		defer func() {
			if r := recover(); r != policy {
				t.Errorf("recovered %v", r)
			}
		}()
		_, err := local.Acquire(expect.Patient(t))
		t.Errorf("Acquire returned %v", err)
	}()
	l, err := local.Acquire(expect.Patient(t))
	expect.NoError(t, err)
	giveBack(t, l)
	testserver.WaitChildren(t, dir, 0)
}
