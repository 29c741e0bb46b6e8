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
	// WatchDeleted: the node was deleted. Earlier events were reported before.
	WatchDeleted
	// WatchChanged: the node's data was changed. Of a watch on children: a child came or went, or the node was
	// created.
	WatchChanged
	// WatchBroken: the connection or the session was lost, and perhaps an event.
	WatchBroken
)

// Watch reports once what happens next to a node, or to its children. Its methods panic if no [Session] has made it.
type Watch struct {
	of    *Session
	key   watchKey
	alone bool
	users int // guarded by the mutex of watches

	reply struct { // and err: read once ready is closed
		Names []string
		Data  []byte
		Stat  *zk.Stat
	}
	err error

	event atomic.Int32
	mu    sync.Mutex
	ready chan struct{} // closed when the request was answered
	done  chan struct{}
	calls []*func()
}

func (w *Watch) check() *Watch {
	if w == nil || w.of == nil {
		panic("session: Watch not made by Session.Watch")
	}
	return w
}

// Done returns a channel that is closed when the watch has ended.
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

// AfterEvent calls f in a goroutine of its own when the watch has ended. stop cancels that, and reports whether f
// will not be called. A nil f panics.
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
	w.calls = append(w.calls, &f)
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		i := slices.Index(w.calls, &f)
		if i >= 0 {
			w.calls = slices.Delete(w.calls, i, i+1)
		}
		return i >= 0
	}
}

// Data returns the data and the stat with which the watch was set, if any, and if there was an answer. Nobody may
// change them.
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

// Forget says, once for each call that returned the watch, that it is not needed any more. When all have said so, the
// session removes a pending watch from the server, and it ends as [WatchBroken].
func (w *Watch) Forget() {
	s := w.check().of
	t := &s.watches
	t.mu.Lock() // so a request that sets the watch again is queued behind this one
	defer t.mu.Unlock()
	if w.users--; w.users > 0 || w.Event() != WatchPending {
		return
	}
	t.dropLocked(w, WatchBroken)
	kind, sets := int32(codec.DataWatches), []readKind{getData, exists} // a server has these in one table
	if w.key.set == getChildren {
		kind, sets = codec.ChildWatches, []readKind{getChildren}
	}
	for _, set := range sets {
		if t.m[watchKey{set, w.key.path}] != nil {
			return
		}
	}
	if l := s.link(); l != nil {
		e := s.cfg.head(codec.OpRemoveWatches, w.key.path)
		e.Int32(kind)
		l.conn.Start(&wire.Call{Frame: e.Frame(), Done: func(wire.Reply) {}})
	}
}

func (w *Watch) answered() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready
}

func (w *Watch) share() {
	if w != nil {
		w.of.watches.mu.Lock()
		defer w.of.watches.mu.Unlock()
		w.users++
	}
}

func (w *Watch) land(r wire.Reply) {
	err := w.of.verdict(&r)
	if w.key.set == exists {
		err = ignoreNoNode(err)
	}
	if err == nil { // a session that ends later breaks the watch itself
		err = w.of.Err()
	}
	w.reply.Names, w.reply.Data, w.reply.Stat, w.err = r.Names, r.Data, r.Stat, err
	if err != nil {
		why := WatchBroken // it may not have been set
		if errors.Is(err, zk.ErrNoNode) {
			why = WatchDeleted
		}
		t := &w.of.watches
		t.mu.Lock()
		t.dropLocked(w, why)
		t.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.ready)
	w.ready = closedNow // takes no memory
}

func (w *Watch) end(e WatchEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.event.CompareAndSwap(int32(WatchPending), int32(e)) {
		return
	}
	if w.done != nil {
		close(w.done)
	}
	for _, f := range w.calls {
		go (*f)()
	}
	w.calls = nil
}

// watches are the pending watches of a session. A watch is added before its request is sent, and ends with the next
// event at the path, even one before the answer. So a pending watch has missed nothing since the answer.
type watches struct {
	mu sync.Mutex
	m  map[watchKey][]*Watch // at most one is shared
}

type watchKey struct {
	set  readKind
	path string // without the chroot
}

// join returns a watch, and the request that sets it unless another call has sent that. Without a node, only exists
// sets a watch, which stays until the node is created: for a contender's node, for ever.
func (s *Session) join(kind readKind, path string, alone bool) (*Watch, *leg) {
	t, key := &s.watches, watchKey{kind, path}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.m[key] {
		if !alone && !w.alone {
			w.users++
			return w, nil
		}
	}
	if t.m == nil {
		t.m = make(map[watchKey][]*Watch)
	}
	w := &Watch{of: s, key: key, alone: alone, users: 1, ready: make(chan struct{})}
	t.m[key] = append(t.m[key], w)
	one := s.cfg.reading(kind, path, true)
	one.kept, one.ended = !alone, w.land
	return w, one
}

func (t *watches) dropLocked(w *Watch, e WatchEvent) {
	t.m[w.key] = slices.DeleteFunc(t.m[w.key], func(one *Watch) bool { return one == w })
	if len(t.m[w.key]) == 0 {
		delete(t.m, w.key)
	}
	w.end(e)
}

// fired takes an event. The server then has no such watch on the node any more, however often it was set.
func (t *watches) fired(event int32, path string) {
	why, sets := WatchChanged, []readKind{}
	switch event {
	case codec.EventDeleted:
		why, sets = WatchDeleted, []readKind{getData, exists, getChildren}
	case codec.EventDataChanged:
		sets = []readKind{getData, exists}
	case codec.EventChildrenChanged:
		sets = []readKind{getChildren}
	case codec.EventCreated:
		sets = []readKind{exists}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, set := range sets {
		key := watchKey{set, path}
		for _, w := range t.m[key] {
			w.end(why)
		}
		delete(t.m, key)
	}
}

// breakAll ends every watch: a server keeps watches no longer than the connection.
func (t *watches) breakAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, all := range t.m {
		for _, w := range all {
			w.end(WatchBroken)
		}
	}
	clear(t.m)
}

// Watch returns a node's data and stat, and a watch that reports what happens to the node next. A pending watch of
// another goroutine is shared, with its data and stat, and nothing is sent. If there is no node, the error matches
// [zk.ErrNoNode]. Otherwise Watch returns and fails as Get does. Call [Watch.Forget] when the watch is not needed any
// more: until then it stays in memory and on the server.
func (s *Session) Watch(ctx context.Context, path string) ([]byte, *zk.Stat, *Watch, error) {
	misuse.Context(ctx, "session: Session.Watch")
	s.check()
	if err := misuse.ValidatePath(path); err != nil {
		return nil, nil, nil, err
	}
	w, err := s.watch(ctx, getData, path)
	if err != nil {
		return nil, nil, nil, err
	}
	return slices.Clip(slices.Clone(w.reply.Data)), copyStat(w.reply.Stat), w, nil
}

// WatchChildren returns the names of a node's children, in no order, the node's stat, and a watch that reports when a
// child comes or goes next, or the node is deleted. It is shared as that of Watch is. If there is no node, the stat
// is nil, and the watch ends as [WatchChanged] when the node is created. Otherwise WatchChildren returns and fails as
// Get does.
func (s *Session) WatchChildren(ctx context.Context, path string) ([]string, *zk.Stat, *Watch, error) {
	misuse.Context(ctx, "session: Session.WatchChildren")
	s.check()
	if err := misuse.ValidatePath(path); err != nil {
		return nil, nil, nil, err
	}
	w, err := s.watch(ctx, getChildren, path)
	if err == nil {
		return slices.Clone(w.reply.Names), copyStat(w.reply.Stat), w, nil
	}
	if !errors.Is(err, zk.ErrNoNode) {
		return nil, nil, nil, err
	}
	if w, err = s.watch(ctx, exists, path); err != nil {
		return nil, nil, nil, err
	}
	if w.reply.Stat != nil { // created since, so this watch is on its data
		w.Forget()
		w = &Watch{of: s, ready: closedNow}
		w.end(WatchChanged)
	}
	return nil, nil, w, nil
}

// WatchNodes sets watches on the data of several nodes, in one flight, and returns them in the order of paths, when
// all requests are answered, ctx has ended or the session has ended. [Watch.Data] tells what the nodes were. Watches
// are shared as that of Watch is.
//
// WatchNodes repeats nothing, and otherwise fails as Get does. The watch of an absent node has ended as
// [WatchDeleted], and one whose answer was lost as [WatchBroken].
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
		if all[i], one = s.join(getData, path, false); one != nil {
			flight = append(flight, one)
		}
	}
	_ = s.fly(ctx, l, flight...)
	for i, w := range all {
		err := s.isSet(ctx, w)
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			continue
		}
		switch lost, broken := s.Err(), outcomeOf(err) != answered; {
		case lost != nil:
			err = lost
		case broken && ctx.Err() == nil:
			continue
		case broken: // in the moment in which ctx has ended
			err = ctx.Err()
		}
		for _, w := range all {
			w.Forget()
		}
		return nil, opError("getData", paths[i], err)
	}
	return all, nil
}

func (s *Session) isSet(ctx context.Context, w *Watch) error {
	if err := s.await(ctx, w.answered()); err != nil {
		return err
	}
	return w.err
}

func (s *Session) watch(ctx context.Context, kind readKind, path string) (*Watch, error) {
	return repeat(ctx, s, reads[kind].name, path, func(l *link) (*Watch, error) {
		w, one := s.join(kind, path, false)
		if one != nil {
			_ = s.fly(ctx, l, one)
		}
		err := s.isSet(ctx, w)
		if err != nil {
			w.Forget()
		}
		return w, err
	})
}
