package core

import (
	"context"
	"errors"
	"path"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/outbox"
	"github.com/turnstile-go/turnstile/internal/watches"
)

// The names of package watches, for package session.
type (
	Watch      = watches.Watch
	WatchEvent = watches.Event
	Owner      = watches.Owner
)

const (
	WatchPending = watches.Pending
	WatchDeleted = watches.Deleted
	WatchChanged = watches.Changed
	WatchBroken  = watches.Broken

	OwnerUnknown = watches.OwnerUnknown
	OwnerWaits   = watches.OwnerWaits
	OwnerFirst   = watches.OwnerFirst
)

// Watch returns a node's data and stat, which must not be changed, and a watch that is shared.
func (s *Session) Watch(ctx context.Context, path string) ([]byte, *zk.Stat, *Watch, error) {
	if err := misuse.ValidatePath(path); err != nil {
		return nil, nil, nil, err
	}
	w, err := s.watchBy(ctx, &s.watches.Data, hooks.RequestInfo{Op: "getData", Path: path}, codec.OpGetData)
	if err != nil {
		return nil, nil, nil, err
	}
	data, stat, _ := w.Result()
	return data, stat, w, nil
}

// StartWatch waits for a connection until ctx ends, and then sets a data watch without
// waiting for the answer: the caller can send further requests at once. The answer is there
// when Watch.Ready is closed. The request is not repeated if its connection is lost.
func (s *Session) StartWatch(ctx context.Context, path string) (*Watch, error) {
	info := hooks.RequestInfo{Op: "getData", Path: path}
	if err := s.ready(ctx); err != nil {
		return nil, opError(info, err)
	}
	return s.startWatchIn(ctx, &s.watches.Data, info, codec.OpGetData), nil
}

// WatchNodes is that of session.Session.
func (s *Session) WatchNodes(ctx context.Context, paths ...string) ([]*Watch, error) {
	var bad []error
	for _, one := range paths {
		bad = append(bad, misuse.ValidatePath(one))
	}
	if err := errors.Join(bad...); err != nil || len(paths) == 0 {
		return nil, err
	}
	read := func(i int) hooks.RequestInfo { return hooks.RequestInfo{Op: "getData", Path: paths[i]} }
	if err := s.ready(ctx); err != nil {
		return nil, opError(read(0), err)
	}
	line := path.Dir(s.outward(paths[0])) // they keep their order also if one of them is the directory of the others
	all := make([]*Watch, len(paths))
	for i := range paths {
		one := reading(codec.OpGetData, s.outward(paths[i]), true)
		one.Dir = line
		all[i] = s.join(ctx, &s.watches.Data, read(i), one)
	}
	for i, w := range all {
		if err := s.isSet(ctx, w); err != nil {
			return nil, opError(read(i), err)
		}
	}
	return all, nil
}

// isSet waits for the answer to the request that sets a watch, and returns what the servers refuse. That there is no node,
// and that the connection was lost, is told by the watch.
func (s *Session) isSet(ctx context.Context, w *Watch) error {
	if !w.Answered() {
		select {
		case <-w.Ready():
		case <-ctx.Done():
			return ctx.Err()
		case <-s.life.Done():
			return s.Err()
		}
	}
	_, _, err := w.Result()
	switch {
	case err == nil, errors.Is(err, zk.ErrNoNode):
		return nil
	case s.Err() != nil:
		return s.Err()
	case Uncertain(err) && !errors.Is(err, ErrTooLong):
		return nil
	}
	return err
}

// Forget ends the watch of a path as broken for all callers that share it. It is for a watch whose event
// must have been lost, because the node is gone. The watch would be shared for as long as the connection lasts.
func (s *Session) Forget(path string) { s.watches.Data.Forget(s.outward(path)) }

// WatchChildren returns a watch that ends as WatchChanged when a child of the node is created or
// deleted, and as WatchDeleted with the node. If there is no such node, it ends as WatchChanged
// when the node is created. Goroutines of one session share the watch. Its Listed has the children, or nothing
// if there is no such node. WatchChildren returns when the watch is set, and fails as Watch does, but not with
// zk.ErrNoNode.
func (s *Session) WatchChildren(ctx context.Context, path string) (*Watch, error) {
	if err := misuse.ValidatePath(path); err != nil {
		return nil, err
	}
	w, err := s.watchBy(ctx, &s.watches.Children, hooks.RequestInfo{Op: "getChildren", Path: path}, codec.OpGetChildren2)
	if !errors.Is(err, zk.ErrNoNode) {
		return w, err
	}
	w, err = s.watchBy(ctx, &s.watches.Absent, hooks.RequestInfo{Op: "exists", Path: path}, codec.OpExists)
	if err != nil {
		return nil, err
	}
	if _, stat, _ := w.Result(); stat != nil {
		return watches.Seen(nil, nil, WatchChanged), nil // the node has been created since
	}
	return w, nil
}

// watchBy is startWatchIn, but waits for the answer, and asks again if it was lost.
func (s *Session) watchBy(ctx context.Context, t *watches.Table, info hooks.RequestInfo, op int32) (*Watch, error) {
	return do(ctx, s, info, shared, inGoroutine(s, func() (*Watch, error) {
		w := s.startWatchIn(ctx, t, info, op)
		<-w.Ready()
		_, _, err := w.Result()
		return w, err
	}))
}

// startWatchIn returns the watch of one of the tables. If there is none to share, it sends a request that
// sets one. If there is no node, only the request exists sets one, and answers with a nil stat: that watch stays until
// the node is created, which for a contender's node is never.
func (s *Session) startWatchIn(ctx context.Context, t *watches.Table, info hooks.RequestInfo, op int32) *Watch {
	return s.join(ctx, t, info, reading(op, s.outward(info.Path), true))
}

// join is startWatchIn with a request that the caller has made.
func (s *Session) join(ctx context.Context, t *watches.Table, info hooks.RequestInfo, one outbox.Call) *Watch {
	full, op := s.outward(info.Path), codec.Op(one.Frame)
	w, first := t.Join(full)
	if !first {
		return w
	}
	done := s.traceRequest(ctx, info)
	answered := func(c content, err error) {
		if err = s.verdict(err); op == codec.OpExists {
			err = ignoreNoNode(err)
		}
		if op == codec.OpGetChildren2 {
			t.LandNames(full, w, c.names, c.stat, err)
		} else {
			t.Land(full, w, c.data, c.stat, err)
		}
		s.withHooks(func() { done(err) })
	}
	if err := s.Err(); err != nil { // after join, so that a session that ends now ends the watch
		answered(content{}, err)
		return w
	}
	call(s.life, s, false, one, contentOf)(answered)
	return w
}
