package watches

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
		want   Event
	}{
		{"nothing", func(wt *watchTest, w *Watch) {
			wt.Land("/a", w, nil, nil, nil)
		}, Pending},
		{"an event after the answer", func(wt *watchTest, w *Watch) {
			wt.Land("/a", w, nil, nil, nil)
			wt.happens(zk.EventNodeDataChanged)
		}, Changed},
		{"an event before the answer", func(wt *watchTest, w *Watch) {
			wt.happens(zk.EventNodeDataChanged)
			wt.Land("/a", w, nil, nil, nil)
		}, Changed},
		{"an event elsewhere", func(wt *watchTest, w *Watch) {
			wt.happensAt("/b", zk.EventNodeDataChanged)
			wt.Land("/a", w, nil, nil, nil)
		}, Pending},
		{"the connection is lost before the answer", func(wt *watchTest, w *Watch) {
			wt.breakAll()
			wt.Land("/a", w, nil, nil, nil)
		}, Broken},
		{"the connection is lost after the answer", func(wt *watchTest, w *Watch) {
			wt.Land("/a", w, nil, nil, nil)
			wt.breakAll()
		}, Broken},
	} {
		t.Run(c.what, func(t *testing.T) {
			wt := newWatchTest(t)
			shared := wt.set(nil)
			w, other := wt.Alone("/a"), wt.Alone("/a")
			if w == shared || w == other {
				t.Fatalf("%p, %p beside %p", w, other, shared)
			}
			c.happen(wt, w)
			wt.want(w, c.want)
			wt.Land("/a", other, nil, nil, zk.ErrConnectionClosed)
			if wt.breakAll(); c.want == Pending {
				wt.want(w, Broken)
			}
			wt.idle()
		})
	}
}
