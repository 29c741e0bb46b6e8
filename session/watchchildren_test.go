package session_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

func watchChildren(t *testing.T, s *session.Session, path string) *session.Watch {
	t.Helper()
	_, _, w, err := s.WatchChildren(patient(t), path)
	must(t, err)
	if e := w.Event(); e != session.WatchPending {
		t.Fatalf("event %v of a new watch", e)
	}
	return w
}

// The watch ends when a child comes or goes, with the node, when the node is created, and with the
// connection. The data of the node does not matter.
func TestWatchChildren(t *testing.T) {
	p, _, s := behindProxy(t, 20*time.Second)
	d, ctx := dir(t, s)+"/parent", patient(t)

	w := watchChildren(t, s, d)
	_, err := s.Create(ctx, d, nil, session.Persistent)
	must(t, err)
	wantEvent(t, w, session.WatchChanged)

	w = watchChildren(t, s, d)
	_, err = s.Set(ctx, d, []byte("new"), -1)
	must(t, err)
	_, _, onData, err := s.Watch(ctx, d)
	must(t, err)
	_, err = s.Set(ctx, d, []byte("newer"), -1)
	must(t, err)
	wantEvent(t, onData, session.WatchChanged)
	if e := w.Event(); e != session.WatchPending {
		t.Fatalf("event %v after a change of the data", e)
	}
	_, err = s.Create(ctx, d+"/child", nil, session.Persistent)
	must(t, err)
	wantEvent(t, w, session.WatchChanged)

	w = watchChildren(t, s, d)
	testserver.Delete(t, d, "child")
	wantEvent(t, w, session.WatchChanged)

	w = watchChildren(t, s, d)
	_, _, onData, err = s.Watch(ctx, d)
	must(t, err)
	p.Disconnect()
	wantEvent(t, w, session.WatchBroken)
	wantEvent(t, onData, session.WatchBroken)

	w = watchChildren(t, s, d)
	_, _, onData, err = s.Watch(ctx, d)
	must(t, err)
	testserver.Delete(t, d)
	wantEvent(t, w, session.WatchDeleted)
	wantEvent(t, onData, session.WatchDeleted)
	if n := watchers(t, d); n != 0 {
		t.Errorf("%d watches are left", n)
	}
}

// Watches on what does not exist are shared too, and do not outlive a reconnect unseen.
func TestWatchCreationAcrossDisconnection(t *testing.T) {
	p, _, s := behindProxy(t, 20*time.Second)
	d, ctx := dir(t, s)+"/parent", patient(t)
	w := watchChildren(t, s, d)
	for range 10 {
		watchChildren(t, s, d)
	}
	if n := watchers(t, d); n != 1 {
		t.Errorf("%d watches on the server", n)
	}
	if n := p.Count(zktest.On(zktest.OpExists, d)); n != 1 {
		t.Errorf("%d requests", n)
	}
	p.Disconnect()
	wantEvent(t, w, session.WatchBroken)
	w = watchChildren(t, s, d)
	_, err := s.Create(ctx, d, nil, session.Persistent)
	must(t, err)
	wantEvent(t, w, session.WatchChanged)
}

// All watches end with the session, and a call that waits for one too.
func TestWatchChildrenOfLostSession(t *testing.T) {
	p, _, s := behindProxy(t, 20*time.Second)
	d := dir(t, s)
	w, absent := watchChildren(t, s, d), watchChildren(t, s, d+"/none")
	must(t, p.Expire(patient(t), s.ID()))
	wantEvent(t, w, session.WatchBroken)
	wantEvent(t, absent, session.WatchBroken)
	_, _, _, err := s.WatchChildren(patient(t), d)
	wantErr(t, "WatchChildren", err, session.ErrLost)
}

// List lists and sets a watch in one request. The watch is not used up by an earlier one at the path, which
// the client's own create, sent just before, ends.
func TestListWatched(t *testing.T) {
	p, _, s := behindProxy(t, 20*time.Second)
	d, ctx := dir(t, s), patient(t)
	earlier := watchChildren(t, s, d)
	_, err := s.Create(ctx, d+"/first", nil, session.Persistent)
	must(t, err)
	wantEvent(t, earlier, session.WatchChanged)
	p.ResetRequests()
	o := session.ListOptions{Children: true}
	first, err := s.List(ctx, d, o)
	must(t, err)
	if len(first.Names) != 1 || first.Names[0] != "first" || first.Children.Event() != session.WatchPending {
		t.Fatalf("%v, event %v", first.Names, first.Children.Event())
	}
	second, err := s.List(ctx, d, o)
	must(t, err)
	if n := p.Count(zktest.On(zktest.OpGetChildren2, d)); n != 2 {
		t.Errorf("%d listings", n)
	}
	_, err = s.Create(ctx, d+"/second", nil, session.Persistent)
	must(t, err)
	wantEvent(t, first.Children, session.WatchChanged)
	wantEvent(t, second.Children, session.WatchChanged)
	third, err := s.List(ctx, d, o)
	must(t, err)
	p.Disconnect()
	wantEvent(t, third.Children, session.WatchBroken)
	_, err = s.List(ctx, d+"/absent", o)
	wantErr(t, "a directory that is not there", err, zk.ErrNoNode)
}

// The public call returns the children too. Callers share the watch, and each has names of its own. One that asks again and
// again does not add watches.
func TestWatchChildrenReturnsThem(t *testing.T) {
	p, _, s := behindProxy(t, 20*time.Second)
	d, ctx := dir(t, s)+"/parent", patient(t)
	names, stat, w, err := s.WatchChildren(ctx, d)
	must(t, err)
	if names != nil || stat != nil || w.Event() != session.WatchPending {
		t.Fatalf("%v, %v, event %v of a node that does not exist", names, stat, w.Event())
	}
	_, err = s.Create(ctx, d, nil, session.Persistent)
	must(t, err)
	wantEvent(t, w, session.WatchChanged)
	_, err = s.Create(ctx, d+"/child", nil, session.Persistent)
	must(t, err)
	p.ResetRequests()
	var last *session.Watch
	for range 50 {
		names, stat, w, err := s.WatchChildren(ctx, d)
		must(t, err)
		if len(names) != 1 || names[0] != "child" || stat.NumChildren != 1 || last != nil && w != last {
			t.Fatalf("%q, %+v, the same watch %v", names, stat, w == last)
		}
		names[0], stat.NumChildren, last = "spoilt", 7, w
	}
	if n := p.Count(zktest.On(zktest.OpGetChildren2, d)); n != 1 {
		t.Errorf("%d requests", n)
	}
	must(t, s.Delete(ctx, d+"/child", -1))
	wantEvent(t, last, session.WatchChanged)
	names, _, w, err = s.WatchChildren(ctx, d)
	must(t, err)
	if len(names) != 0 {
		t.Errorf("%q after the delete", names)
	}
	must(t, s.Delete(ctx, d, -1))
	wantEvent(t, w, session.WatchDeleted)
	_, _, _, err = s.WatchChildren(ctx, "no/path")
	wantErr(t, "a bad path", err, session.ErrInvalid)
}
