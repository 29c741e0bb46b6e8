package core

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/news"
)

// WatchEvent is that of package session.
type WatchEvent int

const (
	WatchPending WatchEvent = iota
	WatchDeleted
	WatchChanged
	WatchBroken
)

// Watch is that of package session.
type Watch struct {
	ready news.News // that the request which sets it has been answered
	data  []byte
	stat  *zk.Stat
	err   error

	mu    sync.Mutex
	done  chan struct{} // closed when the watch ends; nil until Done is called
	tells *telling      // the first of those to tell when the watch ends
	event int8          // a WatchEvent; the bytes from here on are in one word

	isMade bool  // by a Session
	owner  Owner // guarded by mu
}

// Owner is what a contender says on the watch on its own node. The contenders behind it in the same session share that
// watch, so they learn without a request what the contender knows.
type Owner int8

const (
	OwnerUnknown Owner = iota // the node is another session's, or its contender says nothing
	OwnerWaits                // it will say OwnerFirst when it goes
	OwnerFirst                // it has gone, when no contender was ahead of it any more
)

// telling is a function that is called when a watch ends. Most watches have one of them, and some have
// thousands, so they are a list, which takes little memory and from which each is taken at once.
type telling struct {
	tell       func()
	prev, next *telling
}

// Made returns w. It panics if w is nil or a zero value.
func (w *Watch) Made() *Watch {
	if w == nil || !w.isMade {
		panic("session: Watch not made by Session.Watch")
	}
	return w
}

// Done returns a channel that is closed when the watch has ended. Event then returns why.
func (w *Watch) Done() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done == nil {
		w.done = make(chan struct{})
		if w.eventLocked() != WatchPending {
			close(w.done)
		}
	}
	return w.done
}

// Answered reports whether the answer to the request that sets the watch is there.
func (w *Watch) Answered() bool { return w.ready.Has() }

// Ready returns a channel that is closed when that answer is there. If the watch was not set, it has ended by then.
func (w *Watch) Ready() <-chan struct{} { return w.ready.Wait() }

// Result returns the node's data and stat, as the server has told them, which must not be changed.
// If the watch was not set, there is an error: zk.ErrNoNode, and the watch ends as WatchDeleted, or another refusal or that
// of a lost connection (see Uncertain), and the watch ends as WatchBroken. Call it once Ready is closed.
func (w *Watch) Result() ([]byte, *zk.Stat, error) { return w.data, w.stat, w.err }

// Event returns what has ended the watch, or WatchPending.
func (w *Watch) Event() WatchEvent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.eventLocked()
}

// Say sets what Owner returns. Only the contender whose node is watched calls it.
func (w *Watch) Say(o Owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owner = o
}

// Owner returns what the contender whose node is watched has said last.
func (w *Watch) Owner() Owner {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.owner
}

// Notify sends ch a value, without blocking, when the watch ends, or at once if it has ended
// already. ch should have room for one value. stop cancels that.
func (w *Watch) Notify(ch chan<- struct{}) (stop func()) {
	return w.AtEvent(func() { poke(ch) })
}

// AfterEvent calls f in a goroutine of its own when the watch ends, or at once if it has
// ended already. stop cancels that.
func (w *Watch) AfterEvent(f func()) (stop func()) {
	return w.AtEvent(func() { go f() })
}

func (w *Watch) eventLocked() WatchEvent { return WatchEvent(w.event) }

// AtEvent calls tell when the watch ends, or at once if it has ended. stop cancels that. tell runs with locks held: it
// must not block, and take no lock of a Watch.
func (w *Watch) AtEvent(tell func()) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.eventLocked() != WatchPending {
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
	w.fireLocked(e)
}

func (w *Watch) fireLocked(e WatchEvent) {
	if w.eventLocked() != WatchPending {
		return
	}
	w.event = int8(e)
	for t := w.tells; t != nil; t = t.next {
		t.tell()
	}
	w.tells = nil
	if w.done != nil {
		close(w.done)
	}
}

// watches are the pending watches of a kind. Waiters at one path share a watch.
//
// A watch is added before its request is sent. So it ends with the next event at the path, even if the
// event belongs to an earlier watch and comes before the answer. A watch that is pending after its request
// was answered has missed nothing since then.
type watches struct {
	mu sync.Mutex
	m  map[string]*watched // by path, chroot included
}

type watched struct {
	cur   *Watch   // the one to share; its event has not come yet
	alone []*Watch // those that are not shared
}

func (t *watches) init() { t.m = make(map[string]*watched) }

// join returns the watch of a path, and whether the caller has to set it: to send the request and to call land with the
// answer.
func (t *watches) join(path string) (w *Watch, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entryLocked(path)
	if first = e.cur == nil; first {
		e.cur = &Watch{isMade: true}
	}
	return e.cur, first
}

// joinAlone returns a watch that is not shared. The caller has to set it.
func (t *watches) joinAlone(path string) *Watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, w := t.entryLocked(path), &Watch{isMade: true}
	e.alone = append(e.alone, w)
	return w
}

func (t *watches) entryLocked(path string) *watched {
	e := t.m[path]
	if e == nil {
		e = &watched{}
		t.m[path] = e
	}
	return e
}

// land takes the answer to the request that set a watch.
func (t *watches) land(path string, w *Watch, c content, err error) {
	if err != nil {
		t.drop(path, w)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.data, w.stat, w.err = c.data, c.stat, err
	w.ready.Tell()
	switch {
	case errors.Is(err, zk.ErrNoNode):
		w.fireLocked(WatchDeleted)
	case err != nil: // it was not set, or may not have been
		w.fireLocked(WatchBroken)
	}
}

// drop forgets a watch that was not set.
func (t *watches) drop(path string, w *Watch) {
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
func (t *watches) fireLocked(path string, e *watched, event WatchEvent) {
	delete(t.m, path)
	if e.cur != nil {
		e.cur.fire(event)
	}
	for _, w := range e.alone {
		w.fire(event)
	}
}

// fired takes an event of the server. A server tells a connection one event for all watches at the path that
// it has set.
func (t *watches) fired(path string, event WatchEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.m[path]; e != nil {
		t.fireLocked(path, e, event)
	}
}

// forget ends a watch as broken, so that the next request at the path sets another. If w is nil, it
// ends the pending watch.
func (t *watches) forget(path string, w *Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.m[path]
	if e == nil || e.cur == nil || w != nil && w != e.cur {
		return // w has ended already
	}
	t.fireLocked(path, e, WatchBroken)
}

// breakAll ends every watch, because its connection or session is gone. A server keeps the watches of a
// connection no longer than the connection.
func (t *watches) breakAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for path, e := range t.m {
		t.fireLocked(path, e, WatchBroken)
	}
}

// startWatchIn returns the watch of one of the tables. If there is none to share, it sends a request that
// sets one.
func (s *Session) startWatchIn(ctx context.Context, t *watches, info hooks.RequestInfo, request func(full string) starter[content]) *Watch {
	full := s.outward(info.Path)
	w, first := t.join(full)
	if !first {
		return w
	}
	done := s.traceRequest(ctx, info)
	answered := func(c content, err error) {
		err = s.verdict(err)
		t.land(full, w, c, err)
		s.withHooks(func() { done(err) })
	}
	if err := s.Err(); err != nil { // after join, so that a session that ends now ends the watch
		answered(content{}, err)
		return w
	}
	request(full)(answered)
	return w
}

// Watch returns a node's data and stat, which must not be changed, and a watch that is shared.
func (s *Session) Watch(ctx context.Context, path string) ([]byte, *zk.Stat, *Watch, error) {
	if err := misuse.ValidatePath(path); err != nil {
		return nil, nil, nil, err
	}
	w, err := s.watchBy(ctx, &s.watches, hooks.RequestInfo{Op: "getData", Path: path}, s.getWatched)
	if err != nil {
		return nil, nil, nil, err
	}
	return w.data, w.stat, w, nil
}

// StartWatch waits for a connection until ctx ends, and then sets a data watch without
// waiting for the answer: the caller can send further requests at once. The answer is there
// when Watch.Ready is closed. The request is not repeated if its connection is lost.
func (s *Session) StartWatch(ctx context.Context, path string) (*Watch, error) {
	if err := misuse.ValidatePath(path); err != nil {
		return nil, err
	}
	info := hooks.RequestInfo{Op: "getData", Path: path}
	if err := s.ready(ctx); err != nil {
		return nil, opError(info, err)
	}
	return s.startWatchIn(ctx, &s.watches, info, s.getWatched), nil
}

// Forget ends a watch as broken for all callers that share it. It is for a watch whose event
// must have been lost, because the node at its path is not the one it was set on. The watch
// would be shared for as long as the connection lasts.
func (s *Session) Forget(path string, w *Watch) { s.watches.forget(s.outward(path), w) }
