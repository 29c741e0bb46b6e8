package core

import (
	"testing"

	"github.com/go-zookeeper/zk"
)

// A watch that is not shared always asks the server, also beside others, and ends with each event from its
// beginning on: an event in flight may belong to an earlier watch, or to its own.
func TestWatchesAlone(t *testing.T) {
	for _, c := range []struct {
		what   string
		happen func(wt *watchTest, w *Watch)
		want   WatchEvent
	}{
		{"nothing", func(wt *watchTest, w *Watch) {
			wt.land("/a", w, content{}, nil)
		}, WatchPending},
		{"an event after the answer", func(wt *watchTest, w *Watch) {
			wt.land("/a", w, content{}, nil)
			wt.happens(zk.EventNodeDataChanged)
		}, WatchChanged},
		{"an event before the answer", func(wt *watchTest, w *Watch) {
			wt.happens(zk.EventNodeDataChanged)
			wt.land("/a", w, content{}, nil)
		}, WatchChanged},
		{"an event elsewhere", func(wt *watchTest, w *Watch) {
			wt.happensAt("/b", zk.EventNodeDataChanged)
			wt.land("/a", w, content{}, nil)
		}, WatchPending},
		{"the connection is lost before the answer", func(wt *watchTest, w *Watch) {
			wt.breakAll()
			wt.land("/a", w, content{}, nil)
		}, WatchBroken},
		{"the connection is lost after the answer", func(wt *watchTest, w *Watch) {
			wt.land("/a", w, content{}, nil)
			wt.breakAll()
		}, WatchBroken},
	} {
		t.Run(c.what, func(t *testing.T) {
			wt := newWatchTest(t)
			shared := wt.set(nil)
			w, other := wt.joinAlone("/a"), wt.joinAlone("/a")
			if w == shared || w == other {
				t.Fatalf("%p, %p beside %p", w, other, shared)
			}
			c.happen(wt, w)
			wt.want(w, c.want)
			wt.land("/a", other, content{}, zk.ErrConnectionClosed)
			if wt.breakAll(); c.want == WatchPending {
				wt.want(w, WatchBroken)
			}
			wt.idle()
		})
	}
}
