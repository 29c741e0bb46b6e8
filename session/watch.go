package session

import (
	"context"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/news"
	"github.com/turnstile-go/turnstile/internal/plumbing"
)

// WatchEvent is what ended a [Watch].
type WatchEvent int

const (
	// WatchPending: the watch has not ended.
	WatchPending WatchEvent = iota
	// WatchDeleted: the node was deleted. The event came on the connection on which the watch was
	// set, so all earlier events have been reported before it.
	WatchDeleted
	// WatchChanged: the node's data was changed.
	WatchChanged
	// WatchBroken: the connection or the session was lost. The event of the watch may have been
	// missed.
	WatchBroken
)

// Watch reports once what happens to a node next. All methods of a Watch may be called by any
// number of goroutines at once. They panic if a [Session] has not made the Watch.
type Watch struct {
	isMade bool      // by a Session
	ready  news.News // that the get that set it has been answered
	data   []byte
	stat   *zk.Stat
	err    error

	mu    sync.Mutex
	event WatchEvent
	done  chan struct{} // closed when the watch ends; nil until Done is called
	tells *telling      // the first of those to tell when the watch ends
}

// telling is a function that is called when a watch ends. Most watches have one of them, and some have
// thousands, so they are a list, which takes little memory and from which each is taken at once.
type telling struct {
	tell       func()
	prev, next *telling
}

// made returns w. It panics if w is nil or a zero value.
func (w *Watch) made() *Watch {
	if w == nil || !w.isMade {
		panic("session: Watch not made by Session.Watch")
	}
	return w
}

// Done returns a channel that is closed when the watch has ended. Event then returns why.
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

// atEnd calls tell when the watch ends, or at once if it has ended. stop cancels that. tell runs
// with locks held and must not block.
func (w *Watch) atEnd(tell func()) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.event != WatchPending {
		tell()
		return func() {}
	}
	t := &telling{tell: tell, next: w.tells}
	if t.next != nil {
		t.next.prev = t
	}
	w.tells = t
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.dropLocked(t)
	}
}

// dropLocked takes t off the list, if it is there.
func (w *Watch) dropLocked(t *telling) {
	switch {
	case t.tell == nil:
		return
	case t.prev != nil:
		t.prev.next = t.next
	case w.tells == t:
		w.tells = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	*t = telling{}
}

func poke(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// fire ends the watch. The first event counts.
func (w *Watch) fire(e WatchEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.event != WatchPending {
		return
	}
	w.event = e
	for t := w.tells; t != nil; t = t.next {
		t.tell()
	}
	w.tells = nil
	if w.done != nil {
		close(w.done)
	}
}

// watches has one watch of a kind per path, which all waiters at the path share. zk.Conn never removes
// a watch, and each wait would add one.
//
// zk.Conn sets its watches again after each reconnect, even if no Watch uses them any more. An
// entry lasts for as long as zk.Conn has the watch armed, so that the next Watch does not arm it
// twice.
type watches struct {
	mu sync.Mutex
	m  map[string]*watched // by path, chroot included
}

type watched struct {
	armed   bool     // zk.Conn has a watch here
	events  int      // how many events there were
	flights int      // gets in flight
	cur     *Watch   // the one to share; its event has not come yet
	alone   []*Watch // those that are not shared: see joinAlone

	// loose are the watches that were set while an event came: the table cannot tell whether the event
	// was theirs. Each reports whether zk.Conn still has the watch.
	loose []func() (armed bool)
}

// pruneLocked forgets loose watches that zk.Conn does not have any more.
func (e *watched) pruneLocked() {
	e.loose = slices.DeleteFunc(e.loose, func(armed func() bool) bool { return !armed() })
}

func (t *watches) init() { t.m = make(map[string]*watched) }

// anyArmed reports whether zk.Conn has a watch to set again after a reconnect.
func (t *watches) anyArmed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.m {
		if e.pruneLocked(); e.armed || len(e.loose) > 0 {
			return true
		}
	}
	return false
}

// flight is one get in flight that sets or joins a watch.
type flight struct {
	watch  *Watch
	arm    bool // the get sets a watch, because none is armed
	events int  // events of the entry when the flight began

	armed func() bool // of a watch on children: reports whether zk.Conn still has it
}

// join returns the watch of a path. If its get has not been sent yet, join also returns a flight.
// The caller then sends the get and calls land with the answer.
func (t *watches) join(path string) (*Watch, *flight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entryLocked(path)
	if e.cur != nil {
		return e.cur, nil
	}
	e.cur = &Watch{isMade: true}
	e.flights++
	return e.cur, &flight{watch: e.cur, arm: !e.armed, events: e.events}
}

// joinAlone returns the flight of a watch that is not shared. Its get always asks for a watch: that of
// another watch, which seems armed, may be used up by the time at which the server handles the get.
//
// The watch ends with the next event at the path, even if the event belongs to an earlier watch and
// comes before the answer to the get. So a watch that is pending after its get was answered has
// missed nothing since then.
func (t *watches) joinAlone(path string) *flight {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entryLocked(path)
	w := &Watch{isMade: true}
	e.alone = append(e.alone, w)
	e.flights++
	return &flight{watch: w, arm: true, events: e.events}
}

func (t *watches) entryLocked(path string) *watched {
	e := t.m[path]
	if e == nil {
		e = &watched{}
		t.m[path] = e
	}
	return e
}

// land takes the answer to a flight's get.
func (t *watches) land(path string, f *flight, data []byte, stat *zk.Stat, err error) {
	f.watch.data, f.watch.stat, f.watch.err = data, stat, err
	f.watch.ready.Tell()
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.m[path]
	e.flights--
	switch {
	case err != nil || !f.arm:
	case e.events == f.events:
		e.armed = true
	case f.armed != nil:
		e.loose = append(e.loose, f.armed)
	}
	if err != nil {
		e.dropLocked(f.watch)
	}
	t.dropIdleLocked(path, e)
}

// dropLocked forgets a watch that was not set.
func (e *watched) dropLocked(w *Watch) {
	if e.cur == w {
		e.cur = nil
	}
	if i := slices.Index(e.alone, w); i >= 0 {
		e.alone = slices.Delete(e.alone, i, i+1)
	}
}

// fireLocked ends all watches.
func (e *watched) fireLocked(event WatchEvent) {
	if e.cur != nil {
		e.cur.fire(event)
	}
	for _, w := range e.alone {
		w.fire(event)
	}
	e.cur, e.alone = nil, nil
}

// fired takes an event of zk.Conn. zk.Conn has disarmed the watch by then.
func (t *watches) fired(path string, event WatchEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.m[path]
	if e == nil {
		return
	}
	e.armed, e.loose = false, nil
	e.events++
	e.fireLocked(event)
	t.dropIdleLocked(path, e)
}

// forget ends a watch as broken, so that the next get at the path sets another. If w is nil, it
// ends the pending watch.
func (t *watches) forget(path string, w plumbing.Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.m[path]
	if e == nil || e.cur == nil || w != nil && w != plumbing.Watch((*watchPlumbing)(e.cur)) {
		return // w has ended already
	}
	t.forgetLocked(path, e)
}

// disarm forgets every watch. It is called when a server has refused to set them again after a
// reconnect.
func (t *watches) disarm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for path, e := range t.m {
		t.forgetLocked(path, e)
	}
}

func (t *watches) forgetLocked(path string, e *watched) {
	e.fireLocked(WatchBroken)
	e.armed, e.loose = false, nil
	e.events++ // so that a get in flight does not count as armed
	t.dropIdleLocked(path, e)
}

// breakAll ends every watch, because its connection or session is gone.
func (t *watches) breakAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for path, e := range t.m {
		e.fireLocked(WatchBroken)
		t.dropIdleLocked(path, e)
	}
}

func (t *watches) dropIdleLocked(path string, e *watched) {
	e.pruneLocked()
	if !e.armed && e.flights == 0 && e.cur == nil && len(e.alone) == 0 && len(e.loose) == 0 {
		delete(t.m, path)
	}
}

// startWatch returns the watch on the data of a node. If there is none to share, it sends the get that
// sets one.
func (s *Session) startWatch(ctx context.Context, path string) *Watch {
	return s.startWatchIn(ctx, &s.watches, RequestInfo{Op: "getData", Path: path}, s.getWatched)
}

// startWatchIn returns the watch of one of the tables. If there is none to share, it sends a request with
// get, which sets a watch if the flight's arm is true.
func (s *Session) startWatchIn(ctx context.Context, t *watches, info RequestInfo,
	get func(full string, f *flight) ([]byte, *zk.Stat, error)) *Watch {
	full := s.outward(info.Path)
	w, f := t.join(full)
	if f == nil {
		return w
	}
	traced := false
	defer func() {
		if !traced { // the hook has panicked, or ended the goroutine: others may share the watch
			t.land(full, f, nil, nil, opError(info, zk.ErrConnectionClosed))
		}
	}()
	done := s.traceRequest(ctx, info)
	traced = true
	err := s.begin(func() {
		data, stat, err := get(full, f)
		err = s.verdict(err)
		t.land(full, f, data, stat, err) // before the hook, which may be slow: anyArmed must know
		done(err)
	})
	if err != nil {
		t.land(full, f, nil, nil, err)
		done(err)
	}
	return w
}

// Watch returns a node's data and stat, and a watch that reports what happens to the node next.
// If another goroutine watches the node already, the watch is shared and nothing is sent. Data
// and stat are then those of the time when the watch was set, and the node has not changed since.
// They must not be changed. If the node does not exist, the error matches [zk.ErrNoNode] and
// there is no watch. Otherwise Watch returns and fails as Get does.
func (s *Session) Watch(ctx context.Context, path string) ([]byte, *zk.Stat, *Watch, error) {
	s.made()
	misuse.Context(ctx, "session: Session.Watch")
	if err := validatePath(path); err != nil {
		return nil, nil, nil, err
	}
	w, err := s.watchBy(ctx, &s.watches, RequestInfo{Op: "getData", Path: path}, s.getWatched)
	if err != nil {
		return nil, nil, nil, err
	}
	return w.data, w.stat, w, nil
}

// getWatched sets a watch, unless one is armed already. It watches only nodes that exist. A watch
// for the creation of a node stays until the node is created, which for a contender's node is
// never.
func (s *Session) getWatched(full string, f *flight) ([]byte, *zk.Stat, error) {
	if !f.arm {
		c, err := await(s.get(full))
		return c.data, c.stat, err
	}
	return s.conn.getWatched(full)
}
