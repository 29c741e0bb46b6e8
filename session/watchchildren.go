package session

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
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

// watchChildren is WatchChildren of plumbing.Session.
func (s *Session) watchChildren(ctx context.Context, path string) (*Watch, error) {
	w, err := s.watchBy(ctx, &s.childWatches, RequestInfo{Op: "getChildren", Path: path}, s.listWatched)
	if !errors.Is(err, zk.ErrNoNode) {
		return w, err
	}
	w, err = s.watchBy(ctx, &s.absences, RequestInfo{Op: "exists", Path: path}, s.lookWatched)
	if err == nil && w.stat != nil {
		return endedWatch(WatchChanged), nil // the node has been created since
	}
	return w, err
}

// list is List of plumbing.Session.
func (s *Session) list(ctx context.Context, path string) ([]string, *zk.Stat, *Watch, error) {
	type reply struct {
		children
		watch *Watch
	}
	full := s.outward(path)
	r, err := do(ctx, s, RequestInfo{Op: "getChildren", Path: path}, always, func(done func(reply, error)) {
		w := s.childWatches.joinAlone(full)
		s.listing(ctx, full, true)(func(c children, err error) {
			s.childWatches.land(full, w, content{stat: c.stat}, err)
			done(reply{c, w}, err)
		})
	})
	return r.names, r.stat, r.watch, err
}

// watchBy is startWatchIn, but waits for the answer, and asks again if it was lost.
func (s *Session) watchBy(ctx context.Context, t *watches, info RequestInfo, request func(full string) starter[content]) (*Watch, error) {
	return do(ctx, s, info, shared, inGoroutine(s, func() (*Watch, error) {
		w := s.startWatchIn(ctx, t, info, request)
		<-w.ready.Wait()
		return w, w.err
	}))
}

func endedWatch(event WatchEvent) *Watch {
	w := &Watch{isMade: true, event: int8(event)}
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
