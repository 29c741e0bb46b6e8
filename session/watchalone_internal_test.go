package session

import (
	"testing"

	"github.com/go-zookeeper/zk"
)

// A watch that is not shared always asks the server, also beside others, and ends with each event from its
// beginning on: an event in flight may belong to an earlier watch, or to its own.
func TestWatchesAlone(t *testing.T) {
	for _, c := range []struct {
		what   string
		happen func(wt *watchTest, f *flight)
		want   WatchEvent
	}{
		{"nothing", func(wt *watchTest, f *flight) {
			wt.land("/a", f, nil, nil, nil)
		}, WatchPending},
		{"an event after the answer", func(wt *watchTest, f *flight) {
			wt.land("/a", f, nil, nil, nil)
			wt.happens(zk.EventNodeDataChanged)
		}, WatchChanged},
		{"an event before the answer", func(wt *watchTest, f *flight) {
			wt.happens(zk.EventNodeDataChanged)
			wt.land("/a", f, nil, nil, nil)
		}, WatchChanged},
		{"an event elsewhere", func(wt *watchTest, f *flight) {
			wt.happensAt("/b", zk.EventNodeDataChanged)
			wt.land("/a", f, nil, nil, nil)
		}, WatchPending},
		{"the connection is lost before the answer", func(wt *watchTest, f *flight) {
			wt.breakAll()
			wt.land("/a", f, nil, nil, nil)
		}, WatchBroken},
		{"the connection is lost after the answer", func(wt *watchTest, f *flight) {
			wt.land("/a", f, nil, nil, nil)
			wt.breakAll()
		}, WatchBroken},
		{"setWatches is refused", func(wt *watchTest, f *flight) {
			wt.land("/a", f, nil, nil, nil)
			wt.disarm()
		}, WatchBroken},
	} {
		t.Run(c.what, func(t *testing.T) {
			wt := newWatchTest(t)
			shared := wt.set(true, nil)
			f, g := wt.joinAlone("/a"), wt.joinAlone("/a")
			if !f.arm || !g.arm || f.watch == shared || f.watch == g.watch {
				t.Fatalf("%+v, %+v beside %p", f, g, shared)
			}
			c.happen(wt, f)
			wt.want(f.watch, c.want)
			wt.land("/a", g, nil, nil, zk.ErrConnectionClosed)
			if wt.disarm(); c.want == WatchPending {
				wt.want(f.watch, WatchBroken)
			}
			wt.idle()
		})
	}
}

// When an event comes while the request is in flight, the event may be that of an earlier watch. Then zk.Conn has the
// new one, and sets it again after a reconnect.
func TestWatchesAloneLoose(t *testing.T) {
	for _, own := range []bool{false, true} {
		wt := newWatchTest(t)
		wt.set(true, nil)
		f, armed := wt.joinAlone("/a"), true
		f.armed = func() bool { return armed }
		wt.happens(zk.EventNodeDataChanged)
		wt.land("/a", f, nil, nil, nil)
		wt.want(f.watch, WatchChanged)
		armed = !own
		if wt.anyArmed() == own {
			t.Errorf("the event was its own: %v; armed %v", own, !own)
		}
		wt.happens(zk.EventNodeDataChanged)
		wt.set(true, zk.ErrNoNode)
		wt.idle()
	}
}

// eventful is a client that hears of an earlier change of the children while it asks for them.
type eventful struct {
	client
	heard func()
}

func (c eventful) childrenWatched(string) ([]string, *zk.Stat, func() bool, error) {
	c.heard()
	return nil, &zk.Stat{}, func() bool { return true }, nil
}

// So it is with the watch of WatchChildren.
func TestWatchChildrenLoose(t *testing.T) {
	s := bareSession(t, newFakeConfig(t))
	s.childWatches.init()
	s.conn = eventful{heard: func() { s.childWatches.fired("/a", WatchChanged) }}
	w := s.startWatchIn(t.Context(), &s.childWatches, RequestInfo{Op: "getChildren", Path: "/a"}, s.listWatched)
	<-w.ready.Wait()
	if w.err != nil || w.Event() != WatchChanged {
		t.Fatalf("event %v, %v", w.Event(), w.err)
	}
	if !s.childWatches.anyArmed() {
		t.Error("the watch that the client has now is not known")
	}
}
