package session_test

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// watchers returns how many sessions watch a path on the server.
func watchers(t *testing.T, p string) int {
	t.Helper()
	text, err := testserver.Server(t).Word(patient(t), 0, "wchp")
	must(t, err)
	n, here := 0, false
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "/") {
			here = line == p
		} else if here && strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}

func wantEvent(t *testing.T, w *session.Watch, want session.WatchEvent) {
	t.Helper()
	within(t, w.Done(), "the event")
	if got := w.Event(); got != want {
		t.Fatalf("event %v, want %v", got, want)
	}
}

// All waiters at a node share one watch and one request.
func TestWatchIsShared(t *testing.T) {
	p, _, s := behindProxy(t, 20*time.Second)
	d, ctx := dir(t, s), patient(t)
	node, err := makeNode(ctx, s, d+"/n", []byte("x"))
	must(t, err)
	var first *session.Watch
	for range 50 {
		data, stat, w, err := s.Watch(ctx, node)
		must(t, err)
		if string(data) != "x" || stat.EphemeralOwner != s.ID() {
			t.Fatalf("data %q, stat %+v", data, stat)
		}
		if first == nil {
			first = w
		}
		if w != first || w.Event() != session.WatchPending {
			t.Fatal("another watch")
		}
	}
	if n := p.Count(zktest.On(zktest.OpGetData, node)); n != 1 {
		t.Errorf("%d requests", n)
	}
	if n := watchers(t, node); n != 1 {
		t.Errorf("%d watches on the server", n)
	}
	must(t, s.Delete(ctx, node, -1))
	wantEvent(t, first, session.WatchDeleted)
}

// Each caller has the data and the stat for itself, and can change them.
func TestWatchIsCopied(t *testing.T) {
	_, _, s := behindProxy(t, 20*time.Second)
	d, ctx := dir(t, s), patient(t)
	node, err := makeNode(ctx, s, d+"/n", []byte("x"))
	must(t, err)
	data, stat, _, err := s.Watch(ctx, node)
	must(t, err)
	data[0], stat.EphemeralOwner = 'y', 0
	data, stat, _, err = s.Watch(ctx, node)
	must(t, err)
	if string(data) != "x" || stat.EphemeralOwner != s.ID() {
		t.Errorf("data %q, stat %+v", data, stat)
	}
}

func TestWatchEvents(t *testing.T) {
	p, _, s := behindProxy(t, 20*time.Second)
	d, ctx := dir(t, s), patient(t)
	node, err := makeNode(ctx, s, d+"/n", nil)
	must(t, err)

	_, _, w, err := s.Watch(ctx, node)
	must(t, err)
	_, err = testserver.Admin(t).Set(node, []byte("new"), -1)
	must(t, err)
	wantEvent(t, w, session.WatchChanged)

	data, _, w, err := s.Watch(ctx, node)
	must(t, err)
	if string(data) != "new" {
		t.Errorf("data %q", data)
	}
	p.Disconnect()
	wantEvent(t, w, session.WatchBroken)

	_, _, w, err = s.Watch(ctx, node)
	must(t, err)
	testserver.Delete(t, node)
	wantEvent(t, w, session.WatchDeleted)

	_, _, w, err = s.Watch(ctx, node)
	wantErr(t, "watch of a node that is gone", err, zk.ErrNoNode)
	if w != nil || watchers(t, node) != 0 {
		t.Error("it left a watch")
	}
}

// A client that watches again after a reconnect does not miss what happened in between.
func TestWatchAgainAfterDisconnection(t *testing.T) {
	p, m, s := behindProxy(t, 20*time.Second)
	d, ctx := dir(t, s), patient(t)
	node := path.Join(d, "n")
	_, err := s.Create(ctx, node, nil, session.Persistent)
	must(t, err)
	_, _, w, err := s.Watch(ctx, node)
	must(t, err)
	var h history
	m.Subscribe(h.add)
	p.Refuse(true)
	p.Disconnect()
	h.wait(t, session.Connected, session.Suspended)
	wantEvent(t, w, session.WatchBroken)
	testserver.Delete(t, node)
	p.Heal()
	_, _, _, err = s.Watch(ctx, node)
	wantErr(t, "watch", err, zk.ErrNoNode)
}

// What callers get has no room behind it. If they append to it, they do not change what others have.
func TestWatchDataHasNoRoom(t *testing.T) {
	_, _, s := behindProxy(t, 20*time.Second)
	d, ctx := dir(t, s), patient(t)
	node, err := makeNode(ctx, s, d+"/n", []byte("data"))
	must(t, err)
	watched, _, _, err := s.Watch(ctx, node)
	must(t, err)
	read, _, err := s.Get(ctx, node)
	must(t, err)
	if string(watched) != "data" || cap(watched) != 4 || cap(read) != 4 {
		t.Errorf("%q with room for %d bytes, and for %d", watched, cap(watched), cap(read))
	}
}
