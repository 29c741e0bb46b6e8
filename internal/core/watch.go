package core

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/watches"
)

// Watches, as package place names them.
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

// List is Children, and sets a watch on the children in the same request. The
// watch ends as that of WatchChildren does, and is not shared. While it is pending, no child was
// created or deleted since the listing, as far as the server has told, and the connection of the
// listing lasts. It may have ended by the time at which List returns, also by an event that came
// before the listing.
func (s *Session) List(ctx context.Context, path string) ([]string, *zk.Stat, *Watch, error) {
	type reply struct {
		children
		watch *Watch
	}
	full := s.outward(path)
	r, err := do(ctx, s, hooks.RequestInfo{Op: "getChildren", Path: path}, always, func(done func(reply, error)) {
		w := s.watches.Children.Alone(full)
		s.listing(ctx, full, true)(func(c children, err error) {
			s.watches.Children.Land(full, w, nil, c.stat, err)
			done(reply{c, w}, err)
		})
	})
	return r.names, r.stat, r.watch, err
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
	full := s.outward(info.Path)
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
	call(s.life, s, false, reading(op, full, true), contentOf)(answered)
	return w
}
