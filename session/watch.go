package session

import (
	"context"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/plumbing"
)

// WatchEvent is what ended a [Watch].
type WatchEvent int

const (
	// WatchPending: nothing has happened yet.
	WatchPending WatchEvent = iota
	// WatchDeleted: the node was deleted, and the news came on the connection on
	// which the watch was set: everything that happened before has been reported
	// before.
	WatchDeleted
	// WatchChanged: the node's data was changed.
	WatchChanged
	// WatchBroken: the connection or the session was lost, and what the watch
	// would have told may have been missed.
	WatchBroken
)

// Watch tells once what happens to a node next. It may be shared, and used by any
// number of goroutines at once. All methods of a Watch that a [Session] has not made panic.
type Watch struct {
	ready chan struct{} // closed when the get that set it has been answered
	data  []byte
	stat  *zk.Stat
	err   error

	mu    sync.Mutex
	event WatchEvent
	done  chan struct{}        // closed when it ends; nil until somebody asks for it
	tell  map[*func()]struct{} // what to call when it ends
}

// made returns w. It panics if w is nil or a zero value.
func (w *Watch) made() *Watch {
	if w == nil || w.ready == nil {
		panic("session: Watch not made by Session.Watch")
	}
	return w
}

// Done returns a channel that is closed when the watch has ended: see Event.
func (w *Watch) Done() <-chan struct{} {
	w.made()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done == nil {
		w.done = make(chan struct{})
		if w.event != WatchPending {
			close(w.done)
		}
	}
	return w.done
}

// Event returns what has ended the watch, or WatchPending.
func (w *Watch) Event() WatchEvent {
	w.made()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.event
}

// atEnd has tell called when the watch ends, with locks held: it must not block.
func (w *Watch) atEnd(tell func()) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.event != WatchPending {
		tell()
		return func() {}
	}
	if w.tell == nil {
		w.tell = make(map[*func()]struct{})
	}
	w.tell[&tell] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.tell, &tell)
	}
}

func poke(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// fire ends the watch; the first event counts.
func (w *Watch) fire(e WatchEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.event != WatchPending {
		return
	}
	w.event = e
	for tell := range w.tell {
		(*tell)()
	}
	w.tell = nil
	if w.done != nil {
		close(w.done)
	}
}

// watches holds one data watch per path, shared by all who wait there: zk.Conn
// never removes a watch, and would gather one more at each wait.
//
// An entry stays as long as zk.Conn has the watch armed, which it does across
// reconnects, though no Watch is attached to it any more: so that the next one
// does not arm it twice.
type watches struct {
	mu sync.Mutex
	m  map[string]*watched // by path, chroot included
}

type watched struct {
	armed   bool   // zk.Conn has a watch here
	events  int    // how many events have come
	flights int    // gets under way
	cur     *Watch // the one that can be shared: its event is still to come
}

func (t *watches) init() { t.m = make(map[string]*watched) }

// anyArmed reports whether zk.Conn has any watch to set again after a reconnect.
func (t *watches) anyArmed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.m {
		if e.armed {
			return true
		}
	}
	return false
}

// flight is one get under way for a watch.
type flight struct {
	watch  *Watch
	arm    bool // the get is to set a watch: none is armed
	events int  // of the entry when the flight began
}

// join returns the watch of a path, and, if its get is still to be made, the flight
// to make it with, which ends in land.
func (t *watches) join(path string) (*Watch, *flight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.m[path]
	if e == nil {
		e = &watched{}
		t.m[path] = e
	}
	if e.cur != nil {
		return e.cur, nil
	}
	e.cur = &Watch{ready: make(chan struct{})}
	e.flights++
	return e.cur, &flight{e.cur, !e.armed, e.events}
}

// land takes the answer to a flight's get.
func (t *watches) land(path string, f *flight, data []byte, stat *zk.Stat, err error) {
	f.watch.data, f.watch.stat, f.watch.err = data, stat, err
	close(f.watch.ready)
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.m[path]
	e.flights--
	if err == nil && f.arm && e.events == f.events {
		e.armed = true
	}
	if err != nil && e.cur == f.watch {
		e.cur = nil
	}
	t.dropIdleLocked(path, e)
}

// fired takes an event of zk.Conn, which disarms the watch.
func (t *watches) fired(path string, event WatchEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.m[path]
	if e == nil {
		return
	}
	e.armed = false
	e.events++
	if e.cur != nil {
		e.cur.fire(event)
		e.cur = nil
	}
	t.dropIdleLocked(path, e)
}

// forget ends a watch as broken, or, given none, whichever is pending, and has the next one
// at the path set anew.
func (t *watches) forget(path string, w plumbing.Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.m[path]
	if e == nil || e.cur == nil || w != nil && w != plumbing.Watch((*watchPlumbing)(e.cur)) {
		return // it has ended already
	}
	t.forgetLocked(path, e)
}

// disarm forgets every watch: what was to be set again after a reconnect is not.
func (t *watches) disarm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for path, e := range t.m {
		t.forgetLocked(path, e)
	}
}

func (t *watches) forgetLocked(path string, e *watched) {
	if e.cur != nil {
		e.cur.fire(WatchBroken)
		e.cur = nil
	}
	e.armed = false
	e.events++ // a get that is under way tells of before
	t.dropIdleLocked(path, e)
}

// breakAll ends every watch: its connection, or the session, is gone.
func (t *watches) breakAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for path, e := range t.m {
		if e.cur != nil {
			e.cur.fire(WatchBroken)
			e.cur = nil
		}
		t.dropIdleLocked(path, e)
	}
}

func (t *watches) dropIdleLocked(path string, e *watched) {
	if !e.armed && e.flights == 0 && e.cur == nil {
		delete(t.m, path)
	}
}

// startWatch joins whoever watches a node already, or sends the get that sets a watch.
func (s *Session) startWatch(ctx context.Context, path string) *Watch {
	full := s.outward(path)
	w, f := s.watches.join(full)
	if f == nil {
		return w
	}
	info := RequestInfo{Op: "getData", Path: path}
	traced := false
	defer func() {
		if !traced { // the hook has panicked, or ended the goroutine: others may share the watch
			s.watches.land(full, f, nil, nil, opError(info, zk.ErrConnectionClosed))
		}
	}()
	done := s.traceRequest(ctx, info)
	traced = true
	err := s.begin(func() {
		data, stat, err := s.getWatched(full, f.arm)
		err = s.verdict(err)
		s.watches.land(full, f, data, stat, err) // before a hook can take its time: see anyArmed
		done(err)
	})
	if err != nil {
		s.watches.land(full, f, nil, nil, err)
		done(err)
	}
	return w
}

// Watch returns a node's data and stat, and the watch that tells what happens to it
// next. If somebody waits at the node already his watch is shared: then nothing is
// sent, and data and stat are those it was set with, which nothing has changed
// since. They are not to be written to. For a node that does not exist there is
// [zk.ErrNoNode] and no watch. Otherwise it returns and fails as Get does.
func (s *Session) Watch(ctx context.Context, path string) ([]byte, *zk.Stat, *Watch, error) {
	s.made()
	misuse.Context(ctx, "session: Session.Watch")
	if err := validatePath(path); err != nil {
		return nil, nil, nil, err
	}
	w, err := do(ctx, s, RequestInfo{Op: "getData", Path: path}, shared, func() (*Watch, error) {
		w := s.startWatch(ctx, path)
		<-w.ready
		return w, w.err
	})
	if err != nil {
		return nil, nil, nil, err
	}
	return w.data, w.stat, w, nil
}

// getWatched sets a watch, unless one is armed already. It watches only nodes that exist. A watch
// for the creation of a node stays until the node is created, which for a contender's node is
// never.
func (s *Session) getWatched(full string, arm bool) ([]byte, *zk.Stat, error) {
	if !arm {
		return s.conn.get(full)
	}
	return s.conn.getWatched(full)
}
