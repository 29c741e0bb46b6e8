package watches

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// watchTest drives the table of watches as connections and callers do.
type watchTest struct {
	*testing.T
	Table
}

func newWatchTest(t *testing.T) *watchTest {
	return &watchTest{T: t}
}

// set joins a watch, expects that a request is needed, and lands it.
func (t *watchTest) set(err error) *Watch {
	t.Helper()
	w := t.flying()
	t.Land("/a", w, []byte("x"), &zk.Stat{}, err)
	return w
}

// flying joins a watch that has to be set.
func (t *watchTest) flying() *Watch {
	t.Helper()
	w, first := t.Join("/a")
	if !first {
		t.Fatal("shared, want a request")
	}
	return w
}

func (t *watchTest) happens(typ zk.EventType) { t.happensAt("/a", typ) }

func (t *watchTest) happensAt(path string, typ zk.EventType) {
	t.end(path, map[zk.EventType]Event{zk.EventNodeDeleted: Deleted, zk.EventNodeDataChanged: Changed}[typ])
}

func (t *watchTest) want(w *Watch, e Event) {
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
	w := wt.flying()
	for range 3 { // in flight and after
		if other, first := wt.Join("/a"); other != w || first {
			t.Fatal("not shared")
		}
		wt.Land("/a", w, nil, nil, nil)
	}
	wt.happens(zk.EventNodeDeleted)
	wt.want(w, Deleted)
	wt.idle()
}

// What the owner of a node says reaches all that share its watch, and goes with the watch.
func TestOwner(t *testing.T) {
	wt := newWatchTest(t)
	own := wt.set(nil)
	other, _ := wt.Join("/a")
	own.Say(OwnerFirst)
	wt.happens(zk.EventNodeDataChanged)
	if got := other.Owner(); got != OwnerFirst {
		t.Errorf("it has said %d", got)
	}
	if got := wt.set(nil).Owner(); got != OwnerUnknown {
		t.Errorf("the next watch has %d, of which nobody has spoken", got)
	}
}

func TestWatchesEvents(t *testing.T) {
	for typ, want := range map[zk.EventType]Event{
		zk.EventNodeDeleted:     Deleted,
		zk.EventNodeDataChanged: Changed,
	} {
		wt := newWatchTest(t)
		w := wt.set(nil)
		wt.happensAt("/b", zk.EventNodeDeleted) // another's
		wt.want(w, Pending)
		wt.happens(typ)
		wt.want(w, want)
		wt.happens(zk.EventNodeDeleted) // the first counts
		wt.want(w, want)
		wt.idle()
	}
}

// Each kind of event ends the watches that the server has ended with it.
func TestEventsByTable(t *testing.T) {
	for kind, want := range map[int32][3]Event{ // on data, on children, on a node that did not exist
		codec.EventCreated:         {Pending, Pending, Changed},
		codec.EventDeleted:         {Deleted, Deleted, Deleted},
		codec.EventDataChanged:     {Changed, Pending, Changed},
		codec.EventChildrenChanged: {Pending, Changed, Pending},
	} {
		var tables Tables
		var all [3]*Watch
		for i, table := range []*Table{&tables.Data, &tables.Children, &tables.Absent} {
			all[i], _ = table.Join("/a")
		}
		tables.Fired(kind, "/b")
		for i, w := range all {
			if w.Event() != Pending {
				t.Errorf("an event at another path ends watch %d", i)
			}
		}
		tables.Fired(kind, "/a")
		for i, w := range all {
			if w.Event() != want[i] {
				t.Errorf("kind %d: watch %d has event %d, want %d", kind, i, w.Event(), want[i])
			}
		}
	}
}

// The server forgets the watches of a connection that is lost. The next request sets one on the new connection.
func TestWatchesBroken(t *testing.T) {
	wt := newWatchTest(t)
	w := wt.set(nil)
	for range 3 {
		wt.breakAll()
		wt.want(w, Broken)
		wt.idle()
		wt.happens(zk.EventNodeDeleted)
		wt.want(w, Broken)
		w = wt.set(nil)
	}
	wt.happens(zk.EventNodeDataChanged)
	wt.want(w, Changed)
	wt.idle()
}

// An event that comes before the answer ends the watch: it may be that of an earlier one.
func TestWatchesEventInFlight(t *testing.T) {
	wt := newWatchTest(t)
	w := wt.flying()
	wt.happens(zk.EventNodeDeleted)
	next := wt.flying() // a watch that has ended is not shared
	wt.Land("/a", w, nil, nil, nil)
	wt.want(w, Deleted)
	wt.want(next, Pending)
	wt.Land("/a", next, nil, nil, zk.ErrNoNode)
	wt.idle()
}

func TestWatchesErrorInFlight(t *testing.T) {
	wt := newWatchTest(t)
	w := wt.flying()
	if other, _ := wt.Join("/a"); other != w {
		t.Fatal("not shared")
	}
	wt.Land("/a", w, nil, nil, zk.ErrNoNode)
	if !errors.Is(w.err, zk.ErrNoNode) {
		t.Errorf("got %v", w.err)
	}
	wt.idle() // no watch for a node that is not there
	wt.set(nil)
}

// The connection breaks while the request is in flight. A second request begins before the first has
// landed.
func TestWatchesBreakInFlight(t *testing.T) {
	wt := newWatchTest(t)
	w := wt.flying()
	wt.breakAll()
	wt.want(w, Broken)
	next := wt.flying()
	wt.Land("/a", w, nil, nil, zk.ErrConnectionClosed)
	wt.want(next, Pending)
	wt.Land("/a", next, nil, nil, nil)
	if other, first := wt.Join("/a"); other != next || first {
		t.Error("not shared after a failure of the request before")
	}
	wt.happens(zk.EventNodeDeleted)
	wt.want(next, Deleted)
	wt.idle()
}

func TestWatchNotify(t *testing.T) {
	wt := newWatchTest(t)
	w := wt.set(nil)
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

// A watch that is forgotten ends for everything that shares it, and the next request sets another. That
// includes a watch whose request is in flight, and one without waiters.
func TestWatchesForgotten(t *testing.T) {
	wt := newWatchTest(t)
	w := wt.set(nil)
	woken := make(chan struct{}, 1)
	defer w.Notify(woken)()
	wt.Forget("/a")
	wt.want(w, Broken)
	if len(woken) != 1 {
		t.Error("nobody is told")
	}
	select {
	case <-w.Done():
	default:
		t.Error("not done")
	}
	wt.idle()

	w = wt.flying()
	wt.Forget("/a")
	wt.want(w, Broken)
	next := wt.flying()
	wt.Land("/a", w, nil, nil, nil)
	wt.want(next, Pending)
	wt.Land("/a", next, nil, nil, nil)
	wt.happens(zk.EventNodeDeleted)
	wt.want(next, Deleted)
	wt.idle()
}

// A watch that was not set, because there is no node, has ended as one on a node that goes. A function that is told of the
// end finds the reason.
func TestWatchOfNoNode(t *testing.T) {
	for err, want := range map[error]Event{zk.ErrNoNode: Deleted, zk.ErrNoAuth: Broken, zk.ErrConnectionClosed: Broken} {
		wt := newWatchTest(t)
		w := wt.flying()
		told := make(chan bool, 1)
		w.AtEvent(func() { told <- w.ready.Has() })
		wt.Land("/a", w, nil, nil, err)
		wt.want(w, want)
		if !<-told {
			t.Errorf("%v: told of the end before the answer is there", err)
		}
		wt.idle()
	}
}
