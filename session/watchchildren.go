package session

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// watchTables returns the tables of all watches of zk.Conn: on the data of nodes, on their children, and
// on nodes that do not exist.
func (s *Session) watchTables() []*watches {
	return []*watches{&s.watches, &s.childWatches, &s.absences}
}

// watchFired implements clientEvents. zk.Conn has disarmed all watches at the path that end with the
// event. The watch on a node that was absent becomes one on its data if there is a node after all.
func (e *connEvents) watchFired(path string, event WatchEvent) {
	e.watches.fired(path, event)
	e.absences.fired(path, event)
	if event != WatchChanged { // of data
		e.childWatches.fired(path, event)
	}
}

// childrenChanged implements clientEvents.
func (e *connEvents) childrenChanged(path string) { e.childWatches.fired(path, WatchChanged) }

// created implements clientEvents.
func (e *connEvents) created(path string) { e.absences.fired(path, WatchChanged) }

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
		names []string
		stat  *zk.Stat
		watch *Watch
	}
	full := s.outward(path)
	r, err := do(ctx, s, RequestInfo{Op: "getChildren", Path: path}, always, inGoroutine(s, func() (reply, error) {
		f := s.childWatches.joinAlone(full)
		names, stat, armed, err := s.conn.childrenWatched(full)
		f.armed = armed
		if err == nil {
			err = s.rejectReply(checkNames(names))
		}
		s.childWatches.land(full, f, nil, stat, err)
		return reply{names, stat, f.watch}, err
	}))
	return r.names, r.stat, r.watch, err
}

// watchBy is startWatchIn, but waits for the answer, and asks again if it was lost.
func (s *Session) watchBy(ctx context.Context, t *watches, info RequestInfo,
	get func(full string, f *flight) ([]byte, *zk.Stat, error)) (*Watch, error) {
	return do(ctx, s, info, shared, inGoroutine(s, func() (*Watch, error) {
		w := s.startWatchIn(ctx, t, info, get)
		<-w.ready.Wait()
		return w, w.err
	}))
}

func endedWatch(event WatchEvent) *Watch {
	w := &Watch{isMade: true, event: event}
	w.ready.Tell()
	return w
}

// listWatched sets a watch on the children of a node, unless one is armed already. If an event of another
// watch comes meanwhile, armed tells whether the new one is still there.
func (s *Session) listWatched(full string, f *flight) ([]byte, *zk.Stat, error) {
	if !f.arm {
		c, err := await(s.listing(full))
		return nil, c.stat, err
	}
	_, stat, armed, err := s.conn.childrenWatched(full)
	f.armed = armed
	return nil, stat, err
}

// lookWatched returns the stat of a node, nil if there is no such node, and sets a watch unless one is
// armed already.
func (s *Session) lookWatched(full string, f *flight) ([]byte, *zk.Stat, error) {
	if !f.arm {
		stat, err := await(s.exists(full))
		return nil, stat, err
	}
	stat, err := s.conn.existsWatched(full)
	return nil, stat, err
}
