package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// WatchEvent is what ended a [Watch].
type WatchEvent int32

const (
	// WatchPending: the watch has not ended.
	WatchPending WatchEvent = iota
	// WatchDeleted: the node was deleted. The event came on the connection on which the watch was set, so all earlier
	// events have been reported before it.
	WatchDeleted
	// WatchChanged: the node's data was changed. Of a watch on children: a child was created or deleted, or the node itself
	// was created.
	WatchChanged
	// WatchBroken: the connection or the session was lost. The event of the watch may have been missed.
	WatchBroken
)

// Watch reports once what happens to a node, or to its children, next. All methods of a Watch may be called by any number of
// goroutines at once. They panic if a [Session] has not made the Watch.
type Watch struct {
	of    *Session
	key   watchKey
	alone bool // it is for one call, and not shared

	// Guarded by the lock of watches.
	users int    // calls that share it and have not forgotten it
	next  *Watch // in the list of its key

	reply struct { // and err: read once ready is closed
		Names []string
		Data  []byte
		Stat  *zk.Stat
	}
	err error

	event atomic.Int32
	mu    sync.Mutex    // guards the rest
	ready chan struct{} // closed when the request that sets it was answered
	done  chan struct{} // nil until somebody asks
	calls *eventCall    // to be made when the watch ends: a list
}

type eventCall struct {
	f    func()
	next *eventCall
}

func (w *Watch) check() *Watch {
	if w == nil || w.of == nil {
		panic("session: Watch not made by Session.Watch")
	}
	return w
}

// Done returns a channel that is closed when the watch has ended. Event then returns why.
func (w *Watch) Done() <-chan struct{} {
	w.check()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done == nil {
		if w.done = make(chan struct{}); w.Event() != WatchPending {
			close(w.done)
		}
	}
	return w.done
}

// Event returns what has ended the watch, or WatchPending.
func (w *Watch) Event() WatchEvent { return WatchEvent(w.check().event.Load()) }

// AfterEvent calls f in a goroutine of its own when the watch has ended, or at once if it has ended. Until then it takes no
// goroutine. stop cancels that, and reports whether f will not be called. It does not wait for f. A nil f panics.
func (w *Watch) AfterEvent(f func()) (stop func() bool) {
	w.check()
	if f == nil {
		panic("session: Watch.AfterEvent: nil function")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Event() != WatchPending {
		go f()
		return func() bool { return false }
	}
	call := &eventCall{f, w.calls}
	w.calls = call
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for at := &w.calls; *at != nil; at = &(*at).next {
			if *at == call {
				*at = call.next
				return true
			}
		}
		return false
	}
}

// Data returns the data and the stat of the node as they were when the watch was set. It returns nil and nil if there was no
// node, if no answer has told what it was, and for a watch on children. Goroutines share both, so nobody may change them.
func (w *Watch) Data() ([]byte, *zk.Stat) {
	select {
	case <-w.check().answered():
		if w.err == nil && w.reply.Names == nil {
			return w.reply.Data, w.reply.Stat
		}
	default:
	}
	return nil, nil
}

// Forget says that the call that has returned the watch does not need it any more. When all calls that share the watch have said
// so, and it is pending, the session asks the server to remove it, and the watch ends as [WatchBroken]. Otherwise the server keeps
// a watch until it has something to tell, or the connection ends. So Forget is for a caller that has waited in vain. To forget a
// watch that has ended does nothing. Forget waits for nothing. It must be called at most once for each call that has returned the
// watch.
func (w *Watch) Forget() {
	s := w.check().of
	t := &s.watches
	t.mu.Lock() // a request that sets a watch at the path again is queued after it was added, so it is behind this one
	defer t.mu.Unlock()
	if w.users--; w.users > 0 || w.Event() != WatchPending {
		return
	}
	t.dropLocked(w, WatchBroken)
	kind, kinds := int32(codec.DataWatches), []watchKind{onData, onAbsence} // a server has these in one table
	if w.key.kind == onChildren {
		kind, kinds = codec.ChildWatches, []watchKind{onChildren}
	}
	for _, k := range kinds {
		if t.m[watchKey{k, w.key.path}] != nil {
			return
		}
	}
	if l := s.link(); l != nil {
		e := s.cfg.head(codec.OpRemoveWatches, w.key.path)
		e.Int32(kind)
		l.conn.Start(&wire.Call{Frame: e.Frame(), Done: func(wire.Reply) {}})
	}
}

// answered returns a channel that is closed when the request that sets the watch was answered. reply and err do not change
// from then on.
func (w *Watch) answered() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready
}

// share notes that one more call returns the watch, which may be nil.
func (w *Watch) share() {
	if w != nil {
		w.of.watches.mu.Lock()
		defer w.of.watches.mu.Unlock()
		w.users++
	}
}

// land takes the answer to the request that sets the watch.
func (w *Watch) land(r wire.Reply) {
	err := w.of.verdict(&r)
	if w.key.kind == onAbsence {
		err = ignoreNoNode(err)
	}
	if err == nil { // a session that ends later ends the watch: it is in the table
		err = w.of.Err()
	}
	w.reply.Names, w.reply.Data, w.reply.Stat, w.err = r.Names, r.Data, r.Stat, err
	if err != nil {
		end := WatchBroken // it was not set, or may not have been
		if errors.Is(err, zk.ErrNoNode) {
			end = WatchDeleted
		}
		t := &w.of.watches
		t.mu.Lock()
		t.dropLocked(w, end)
		t.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.ready)
	w.ready = closedNow // which takes no memory, as long as the watch may be pending
}

func (w *Watch) fire(e WatchEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.event.CompareAndSwap(int32(WatchPending), int32(e)) {
		return
	}
	if w.done != nil {
		close(w.done)
	}
	for ; w.calls != nil; w.calls = w.calls.next {
		go w.calls.f()
	}
}

// watches are the pending watches of a session.
//
// A watch is added before its request is sent. So it ends with the next event at the path, even if the event belongs to an
// earlier watch and comes before the answer. A watch that is pending after its request was answered has missed nothing
// since then.
type watches struct {
	mu sync.Mutex
	m  map[watchKey]*Watch // lists, with one shared watch at most
}

type watchKey struct {
	kind watchKind
	path string // without the chroot
}

type watchKind int8

const (
	onData watchKind = iota
	onChildren
	onAbsence // of a node that does not exist
)

// add returns a watch that is not shared. The caller has to set it.
func (t *watches) add(s *Session, kind watchKind, path string) *Watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.addLocked(&Watch{of: s, key: watchKey{kind, path}, alone: true})
}

func (t *watches) addLocked(w *Watch) *Watch {
	if t.m == nil {
		t.m = make(map[watchKey]*Watch)
	}
	w.users, w.ready, w.next = 1, make(chan struct{}), t.m[w.key]
	t.m[w.key] = w
	return w
}

// join returns the shared watch of a path. If there was none, it also returns a request that sets it. If there is no node, only
// exists sets one: that watch stays until the node is created, which for a contender's node is never.
func (s *Session) join(kind watchKind, path string) (*Watch, *leg) {
	t, key := &s.watches, watchKey{kind, path}
	t.mu.Lock()
	defer t.mu.Unlock()
	for w := t.m[key]; w != nil; w = w.next {
		if !w.alone {
			w.users++
			return w, nil
		}
	}
	w := t.addLocked(&Watch{of: s, key: key})
	one := s.cfg.reading(watchOps[kind].op, path, true)
	one.kept, one.ended = true, w.land
	return w, one
}

// dropLocked ends a watch that was not set, or that its callers do not want any more.
func (t *watches) dropLocked(w *Watch, e WatchEvent) {
	first := t.m[w.key]
	for at := &first; *at != nil; at = &(*at).next {
		if *at == w {
			*at = w.next
			break
		}
	}
	if first == nil {
		delete(t.m, w.key)
	} else {
		t.m[w.key] = first
	}
	w.next = nil
	w.fire(e)
}

// fireAll ends the watches of a list, none of which keeps the others in memory then.
func fireAll(w *Watch, e WatchEvent) {
	for w != nil {
		next := w.next
		w.next = nil
		w.fire(e)
		w = next
	}
}

// fired takes an event of the server, which has no watch of that kind on the node any more, however often it was set. An event
// of a watch on a node that was absent is one of its data if there is a node after all.
func (t *watches) fired(event int32, path string) {
	end, kinds := WatchChanged, []watchKind{}
	switch event {
	case codec.EventDeleted:
		end, kinds = WatchDeleted, []watchKind{onData, onAbsence, onChildren}
	case codec.EventDataChanged:
		kinds = []watchKind{onData, onAbsence}
	case codec.EventChildrenChanged:
		kinds = []watchKind{onChildren}
	case codec.EventCreated:
		kinds = []watchKind{onAbsence}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, kind := range kinds {
		key := watchKey{kind, path}
		fireAll(t.m[key], end)
		delete(t.m, key)
	}
}

// breakAll ends every watch, because its connection or session is gone. A server keeps the watches of a connection no longer
// than the connection.
func (t *watches) breakAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.m {
		fireAll(w, WatchBroken)
	}
	clear(t.m)
}

// Watch returns a node's data and stat, and a watch that reports what happens to the node next. If another goroutine has
// got them already, the watch is shared and nothing is sent. Data and stat are then those of an earlier time, and the node
// has not changed since as long as the watch is pending. If the node does not exist, the error matches [zk.ErrNoNode] and
// there is no watch. Otherwise Watch returns and fails as Get does.
func (s *Session) Watch(ctx context.Context, path string) ([]byte, *zk.Stat, *Watch, error) {
	misuse.Context(ctx, "session: Session.Watch")
	s.check()
	if err := misuse.ValidatePath(path); err != nil {
		return nil, nil, nil, err
	}
	w, err := s.watch(ctx, onData, path)
	if err != nil {
		return nil, nil, nil, err
	}
	return slices.Clip(slices.Clone(w.reply.Data)), copyStat(w.reply.Stat), w, nil // the caller may change them
}

// WatchChildren returns the names of a node's children, in no order, the node's stat, and a watch that reports when a
// child is created or deleted next, or the node is deleted. A change of the data of the node or of a child does not end
// the watch. If another goroutine has got them already, the watch is shared and nothing is sent. Names and stat are then
// those of an earlier time, and no child has come or gone since as long as the watch is pending.
//
// If the node does not exist, WatchChildren returns no names and a nil stat, and the watch ends as [WatchChanged] when
// the node is created. The watch may have ended by the time at which WatchChildren returns. Otherwise WatchChildren
// returns and fails as Get does.
func (s *Session) WatchChildren(ctx context.Context, path string) ([]string, *zk.Stat, *Watch, error) {
	misuse.Context(ctx, "session: Session.WatchChildren")
	s.check()
	if err := misuse.ValidatePath(path); err != nil {
		return nil, nil, nil, err
	}
	w, err := s.watch(ctx, onChildren, path)
	if err == nil {
		return slices.Clone(w.reply.Names), copyStat(w.reply.Stat), w, nil
	}
	if !errors.Is(err, zk.ErrNoNode) {
		return nil, nil, nil, err
	}
	if w, err = s.watch(ctx, onAbsence, path); err != nil {
		return nil, nil, nil, err
	}
	if w.reply.Stat != nil { // the node has been created since, so the watch is on its data
		w.Forget()
		seen := &Watch{of: s, ready: closedNow}
		seen.fire(WatchChanged)
		return nil, nil, seen, nil
	}
	return nil, nil, w, nil
}

// WatchNodes sets watches on the data of several nodes, and returns them in the order of paths. The requests leave in that
// order and in one flight. Each watch is shared as that of Watch is: if there is one already, nothing is sent for it.
// [Watch.Data] tells what the nodes were.
//
// WatchNodes waits for a connection, and returns when all requests are answered, ctx has ended or the session has ended. It
// repeats none of them. If a node is not there, its watch has ended as [WatchDeleted]. If the connection is lost before an
// answer, that watch has ended as [WatchBroken]. Neither is an error. Errors are those of go-zookeeper (zk.ErrNoAuth …) for
// one of the nodes, ctx's, or match [ErrLost], [ErrClosed] or [ErrInvalid]. Without a path, WatchNodes sends nothing.
func (s *Session) WatchNodes(ctx context.Context, paths ...string) ([]*Watch, error) {
	misuse.Context(ctx, "session: Session.WatchNodes")
	s.check()
	var bad []error
	for _, one := range paths {
		bad = append(bad, misuse.ValidatePath(one))
	}
	if err := errors.Join(bad...); err != nil || len(paths) == 0 {
		return nil, err
	}
	l, err := s.ready(ctx)
	if err != nil {
		return nil, opError("getData", paths[0], err)
	}
	all := make([]*Watch, len(paths))
	var flight []*leg
	for i, path := range paths {
		var one *leg
		if all[i], one = s.join(onData, path); one != nil {
			flight = append(flight, one)
		}
	}
	set := false
	defer func() {
		for _, w := range all {
			if !set {
				w.Forget()
			}
		}
	}()
	_ = s.fly(ctx, l, flight...) // each watch tells
	for i, w := range all {
		err := s.isSet(ctx, w)
		what := outcomeOf(err)
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode):
		case s.Err() != nil:
			return nil, opError("getData", paths[i], s.Err())
		case what != answered && ctx.Err() == nil: // the watch tells that
		default:
			return nil, opError("getData", paths[i], err)
		}
	}
	set = true
	return all, nil
}

// isSet waits until a watch is set, and returns why it is not.
func (s *Session) isSet(ctx context.Context, w *Watch) error {
	if err := s.await(ctx, w.answered()); err != nil {
		return err
	}
	return w.err
}

// watch returns the shared watch of a path once it is set. It asks again if the answer was lost.
func (s *Session) watch(ctx context.Context, kind watchKind, path string) (*Watch, error) {
	return repeat(ctx, s, watchOps[kind].name, path, true, func(l *link) (*Watch, bool, error) {
		w, one := s.join(kind, path)
		if one != nil {
			_ = s.fly(ctx, l, one)
		}
		err := s.isSet(ctx, w)
		if err != nil {
			w.Forget()
		}
		return w, false, err
	})
}

var watchOps = [...]struct {
	name string
	op   int32
}{onData: {"getData", codec.OpGetData}, onChildren: {"getChildren", codec.OpGetChildren2}, onAbsence: {"exists", codec.OpExists}}
