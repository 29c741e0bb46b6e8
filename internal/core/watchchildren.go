package core

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// watchTables returns the tables of all watches: on the data of nodes, on their children, and on nodes that
// do not exist.
func (s *Session) watchTables() []*watches {
	return []*watches{&s.watches, &s.childWatches, &s.absences}
}

// watchFired takes an event of a node. The server has no watch on the node any more. One on a node that was
// absent is one on its data if there is a node after all.
func (s *Session) watchFired(path string, event WatchEvent) {
	s.watches.fired(path, event)
	s.absences.fired(path, event)
	if event != WatchChanged { // of data
		s.childWatches.fired(path, event)
	}
}

// breakWatches ends every watch, because its connection or the session is gone.
func (s *Session) breakWatches() {
	for _, t := range s.watchTables() {
		t.breakAll()
	}
}

// WatchChildren returns a watch that ends as WatchChanged when a child of the node is created or
// deleted, and as WatchDeleted with the node. If there is no such node, it ends as WatchChanged
// when the node is created. Goroutines of one session share the watch. Its Result has no data.
// WatchChildren returns when the watch is set, and fails as Watch does, but not with
// zk.ErrNoNode.
func (s *Session) WatchChildren(ctx context.Context, path string) (*Watch, error) {
	if err := misuse.ValidatePath(path); err != nil {
		return nil, err
	}
	w, err := s.watchBy(ctx, &s.childWatches, hooks.RequestInfo{Op: "getChildren", Path: path}, s.listWatched)
	if !errors.Is(err, zk.ErrNoNode) {
		return w, err
	}
	w, err = s.watchBy(ctx, &s.absences, hooks.RequestInfo{Op: "exists", Path: path}, s.lookWatched)
	if err == nil && w.stat != nil {
		return Seen(nil, nil, WatchChanged), nil // the node has been created since
	}
	return w, err
}

// List is Children, and sets a watch on the children in the same request. The
// watch ends as that of WatchChildren does, and is not shared. While it is pending, no child was
// created or deleted since the listing, as far as the server has told, and the connection of the
// listing lasts. It may have ended by the time at which List returns, also by an event that came
// before the listing.
func (s *Session) List(ctx context.Context, path string) ([]string, *zk.Stat, *Watch, error) {
	if err := misuse.ValidatePath(path); err != nil {
		return nil, nil, nil, err
	}
	type reply struct {
		children
		watch *Watch
	}
	full := s.outward(path)
	r, err := do(ctx, s, hooks.RequestInfo{Op: "getChildren", Path: path}, always, func(done func(reply, error)) {
		w := s.childWatches.joinAlone(full)
		s.listing(ctx, full, true)(func(c children, err error) {
			s.childWatches.land(full, w, content{stat: c.stat}, err)
			done(reply{c, w}, err)
		})
	})
	return r.names, r.stat, r.watch, err
}

// watchBy is startWatchIn, but waits for the answer, and asks again if it was lost.
func (s *Session) watchBy(ctx context.Context, t *watches, info hooks.RequestInfo, request func(full string) starter[content]) (*Watch, error) {
	return do(ctx, s, info, shared, inGoroutine(s, func() (*Watch, error) {
		w := s.startWatchIn(ctx, t, info, request)
		<-w.ready.Wait()
		return w, w.err
	}))
}

// Seen returns a watch that an answer has set, and an event has ended unless it is WatchPending. Tests of what callers
// conclude from watches use it too.
func Seen(data []byte, stat *zk.Stat, event WatchEvent) *Watch {
	w := &Watch{isMade: true, data: data, stat: stat, event: int8(event)}
	w.ready.Tell()
	return w
}

// getWatched sets a watch on the data of a node, if the node exists. A watch for the creation of a node stays until
// the node is created, which for a contender's node is never.
func (s *Session) getWatched(full string) starter[content] { return s.get(s.life, full, true) }

// listWatched sets a watch on the children of a node.
func (s *Session) listWatched(full string) starter[content] {
	return func(done func(content, error)) {
		s.listing(s.life, full, true)(func(c children, err error) { done(content{stat: c.stat}, err) })
	}
}

// lookWatched sets a watch on a node, and answers with a nil stat if there is no such node.
func (s *Session) lookWatched(full string) starter[content] {
	return func(done func(content, error)) {
		s.exists(s.life, full, true)(func(stat *zk.Stat, err error) { done(content{stat: stat}, err) })
	}
}
