package session

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
)

// watchTest drives the table of watches as zk.Conn and its callers do.
type watchTest struct {
	*testing.T
	watches
}

func newWatchTest(t *testing.T) *watchTest {
	w := &watchTest{T: t}
	w.init()
	return w
}

// set joins a watch, expects that a get is needed, and lands it.
func (t *watchTest) set(wantArm bool, err error) *Watch {
	t.Helper()
	w, f := t.join("/a")
	t.flying(f, wantArm)
	if f != nil {
		t.land("/a", f, []byte("x"), &zk.Stat{}, err)
	}
	return w
}

func (t *watchTest) flying(f *flight, wantArm bool) {
	t.Helper()
	if f == nil {
		t.Fatal("shared, want a get")
	}
	if f.arm != wantArm {
		t.Fatalf("get with watch: %v, want %v", f.arm, wantArm)
	}
}

func (t *watchTest) happens(typ zk.EventType) { t.happensAt("/a", typ) }

func (t *watchTest) happensAt(path string, typ zk.EventType) {
	passOn(zk.Event{Type: typ, Path: path}, firing{watches: &t.watches})
}

// firing is a session that takes events of watches only.
type firing struct {
	clientEvents
	watches *watches
}

func (f firing) watchFired(path string, e WatchEvent) { f.watches.fired(path, e) }

func (t *watchTest) want(w *Watch, e WatchEvent) {
	t.Helper()
	if w.Event() != e {
		t.Errorf("event %d, want %d", w.Event(), e)
	}
}

func (t *watchTest) idle() {
	t.Helper()
	if len(t.m) != 0 {
		t.Errorf("an entry is left: %+v", *t.m["/a"])
	}
}

func TestWatchesShared(t *testing.T) {
	wt := newWatchTest(t)
	w, f := wt.join("/a")
	wt.flying(f, true)
	for range 3 { // in flight and after
		other, g := wt.join("/a")
		if other != w || g != nil {
			t.Fatal("not shared")
		}
		select {
		case <-w.ready.Wait():
		default:
			wt.land("/a", f, nil, nil, nil)
		}
	}
	if !wt.anyArmed() {
		t.Error("not armed")
	}
	wt.happens(zk.EventNodeDeleted)
	wt.want(w, WatchDeleted)
	wt.idle()
	if wt.anyArmed() {
		t.Error("still armed")
	}
}

func TestWatchesEvents(t *testing.T) {
	for typ, want := range map[zk.EventType]WatchEvent{
		zk.EventNodeDeleted:     WatchDeleted,
		zk.EventNodeDataChanged: WatchChanged,
		zk.EventNotWatching:     WatchBroken,
	} {
		wt := newWatchTest(t)
		w := wt.set(true, nil)
		wt.happensAt("/b", zk.EventNodeDeleted) // another's
		wt.want(w, WatchPending)
		wt.happens(typ)
		wt.want(w, want)
		wt.happens(zk.EventNodeDeleted) // the first counts
		wt.want(w, want)
		wt.idle()
	}
}

// zk.Conn keeps a watch armed across reconnects: the next get must not add one.
func TestWatchesArmedAcrossDisconnects(t *testing.T) {
	wt := newWatchTest(t)
	w := wt.set(true, nil)
	for range 10 {
		wt.breakAll()
		wt.want(w, WatchBroken)
		if !wt.anyArmed() {
			t.Fatal("forgot that zk.Conn has a watch")
		}
		w = wt.set(false, nil)
	}
	wt.want(w, WatchPending)
	wt.happens(zk.EventNodeDataChanged)
	wt.want(w, WatchChanged)
	wt.idle()
	wt.set(true, nil)
}

// An event disarms a watch even if no goroutine waits for it.
func TestWatchesEventAfterBreak(t *testing.T) {
	wt := newWatchTest(t)
	w := wt.set(true, nil)
	wt.breakAll()
	wt.happens(zk.EventNodeDeleted)
	wt.want(w, WatchBroken)
	wt.idle()
}

// The event can come before the caller of the get goes on.
func TestWatchesEventInFlight(t *testing.T) {
	wt := newWatchTest(t)
	w, f := wt.join("/a")
	wt.happens(zk.EventNodeDeleted)
	next, g := wt.join("/a")
	if next == w {
		t.Fatal("a watch that has struck is shared")
	}
	wt.flying(g, true)
	wt.land("/a", f, nil, nil, nil)
	wt.want(w, WatchDeleted)
	if wt.anyArmed() {
		t.Error("armed by a get whose watch has struck")
	}
	wt.land("/a", g, nil, nil, zk.ErrNoNode)
	wt.idle()
}

func TestWatchesErrorInFlight(t *testing.T) {
	wt := newWatchTest(t)
	w, f := wt.join("/a")
	if other, _ := wt.join("/a"); other != w {
		t.Fatal("not shared")
	}
	wt.land("/a", f, nil, nil, zk.ErrNoNode)
	if !errors.Is(w.err, zk.ErrNoNode) {
		t.Errorf("got %v", w.err)
	}
	wt.idle() // no watch for a node that is not there
	wt.set(true, nil)
	if !wt.anyArmed() {
		t.Error("not armed")
	}
}

// The connection breaks while the get is in flight. A second get begins before the first has
// landed.
func TestWatchesBreakInFlight(t *testing.T) {
	wt := newWatchTest(t)
	w, f := wt.join("/a")
	wt.breakAll()
	wt.want(w, WatchBroken)
	w2, g := wt.join("/a")
	wt.flying(g, true)
	wt.land("/a", f, nil, nil, zk.ErrConnectionClosed)
	wt.want(w2, WatchPending)
	wt.land("/a", g, nil, nil, nil)
	if other, h := wt.join("/a"); other != w2 || h != nil {
		t.Error("not shared after a failure of the get before")
	}
	wt.happens(zk.EventNodeDeleted)
	wt.want(w2, WatchDeleted)
	wt.idle()
}

func TestWatchNotify(t *testing.T) {
	wt := newWatchTest(t)
	w := (*watchPlumbing)(wt.set(true, nil))
	ch, gone := make(chan struct{}, 1), make(chan struct{}, 1)
	w.Notify(ch)
	w.Notify(gone)()
	unready := make(chan struct{}) // nobody receives: it must not block
	w.Notify(unready)
	wt.happens(zk.EventNodeDeleted)
	if len(ch) != 1 || len(gone) != 0 {
		t.Errorf("notified %d, and %d that was taken back", len(ch), len(gone))
	}
	<-ch
	stop := w.Notify(ch) // ended already: at once
	if len(ch) != 1 {
		t.Error("not notified of what has happened")
	}
	stop()
}

// A watch that is forgotten ends for everything that shares it, and the next get sets another. That
// includes a watch whose get is in flight, and one without waiters.
func TestWatchesForgotten(t *testing.T) {
	for name, forget := range map[string]func(*watchTest, *Watch){
		"one":      func(wt *watchTest, w *Watch) { wt.forget("/a", (*watchPlumbing)(w)) },
		"whatever": func(wt *watchTest, _ *Watch) { wt.forget("/a", nil) },
		"all":      func(wt *watchTest, _ *Watch) { wt.disarm() },
	} {
		t.Run(name, func(t *testing.T) {
			wt := newWatchTest(t)
			w := wt.set(true, nil)
			woken := make(chan struct{}, 1)
			defer (*watchPlumbing)(w).Notify(woken)()
			forget(wt, w)
			wt.want(w, WatchBroken)
			if len(woken) != 1 {
				t.Error("nobody is told")
			}
			select {
			case <-w.Done():
			default:
				t.Error("not done")
			}
			wt.idle()

			w, f := wt.join("/a")
			wt.flying(f, true)
			forget(wt, w)
			wt.want(w, WatchBroken)
			next, g := wt.join("/a")
			wt.flying(g, true)
			wt.land("/a", f, nil, nil, nil)
			wt.want(next, WatchPending)
			wt.land("/a", g, nil, nil, nil)
			wt.happens(zk.EventNodeDeleted)
			wt.want(next, WatchDeleted)
			wt.idle()
		})
	}
	wt := newWatchTest(t)
	w := wt.set(true, nil)
	wt.breakAll()
	wt.disarm()
	wt.idle()
	next := wt.set(true, nil)
	wt.forget("/a", (*watchPlumbing)(w)) // another's
	wt.want(next, WatchPending)
}
