package watches

import (
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Tables are the pending watches of a session: on the data of nodes, on their children, and on nodes that do
// not exist.
type Tables struct{ Data, Children, Absent Table }

// Fired takes an event of the server. It has no watch of that kind on the node any more. One on a node that
// was absent is one on its data if there is a node after all.
func (t *Tables) Fired(kind int32, path string) {
	switch kind {
	case codec.EventDeleted:
		t.Data.end(path, Deleted)
		t.Absent.end(path, Deleted)
		t.Children.end(path, Deleted)
	case codec.EventDataChanged:
		t.Data.end(path, Changed)
		t.Absent.end(path, Changed)
	case codec.EventChildrenChanged:
		t.Children.end(path, Changed)
	case codec.EventCreated:
		t.Absent.end(path, Changed)
	}
}

// Break ends every watch, because its connection or session is gone. A server keeps the watches of a
// connection no longer than the connection.
func (t *Tables) Break() {
	t.Data.breakAll()
	t.Children.breakAll()
	t.Absent.breakAll()
}

// Table is the pending watches of a kind. Waiters at one path share a watch.
//
// A watch is added before its request is sent. So it ends with the next event at the path, even if the
// event belongs to an earlier watch and comes before the answer. A watch that is pending after its request
// was answered has missed nothing since then.
type Table struct {
	mu sync.Mutex
	m  map[string]*watched // by path, chroot included
}

type watched struct {
	cur   *Watch   // the one to share; its event has not come yet
	alone []*Watch // those that are not shared
}

// Join returns the watch of a path, and whether the caller has to set it: to send the request and to call
// Land with the answer.
func (t *Table) Join(path string) (w *Watch, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entryLocked(path)
	if first = e.cur == nil; first {
		e.cur = &Watch{isMade: true}
	}
	return e.cur, first
}

// Alone returns a watch that is not shared. The caller has to set it.
func (t *Table) Alone(path string) *Watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, w := t.entryLocked(path), &Watch{isMade: true}
	e.alone = append(e.alone, w)
	return w
}

func (t *Table) entryLocked(path string) *watched {
	e := t.m[path]
	if e == nil {
		if t.m == nil {
			t.m = make(map[string]*watched)
		}
		e = &watched{}
		t.m[path] = e
	}
	return e
}

// Land takes the answer to the request that set a watch.
func (t *Table) Land(path string, w *Watch, data []byte, stat *zk.Stat, err error) {
	if err != nil {
		t.Drop(path, w)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.data, w.stat, w.err = data, stat, err
	w.ready.Tell()
	switch {
	case errors.Is(err, zk.ErrNoNode):
		w.fireLocked(Deleted)
	case err != nil: // it was not set, or may not have been
		w.fireLocked(Broken)
	}
}

// LandNames is Land for a watch on children.
func (t *Table) LandNames(path string, w *Watch, names []string, stat *zk.Stat, err error) {
	w.names, w.lists = names, true // before Land, which lets others read them
	t.Land(path, w, nil, stat, err)
}

// Drop forgets a watch that was not set, or one that is not shared and that its caller does not want any more.
func (t *Table) Drop(path string, w *Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.m[path]
	if e == nil {
		return // all watches at the path have ended
	}
	if e.cur == w {
		e.cur = nil
	}
	if i := slices.Index(e.alone, w); i >= 0 {
		e.alone = slices.Delete(e.alone, i, i+1)
	}
	if e.cur == nil && len(e.alone) == 0 {
		delete(t.m, path)
	}
}

// fireLocked ends all watches at a path.
func (t *Table) fireLocked(path string, e *watched, event Event) {
	delete(t.m, path)
	if e.cur != nil {
		e.cur.fire(event)
	}
	for _, w := range e.alone {
		w.fire(event)
	}
}

// end ends the watches at a path. A server tells a connection one event for all watches at the path that it
// has set.
func (t *Table) end(path string, event Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.m[path]; e != nil {
		t.fireLocked(path, e, event)
	}
}

// Forget ends the watch of a path as broken, so that the next request there sets another.
func (t *Table) Forget(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.m[path]; e != nil && e.cur != nil {
		t.fireLocked(path, e, Broken)
	}
}

func (t *Table) breakAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for path, e := range t.m {
		t.fireLocked(path, e, Broken)
	}
}
