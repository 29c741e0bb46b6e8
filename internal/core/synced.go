package core

import (
	"context"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
)

// SyncedChildren is Children behind a sync that leaves after the call has begun. Both requests are sent together, so
// they take one round trip: a server answers the listing once it has caught up with the leader. The leader itself
// answers a sync from what it knows, also when it has been cut off from the others and does not know that yet.
func (s *Session) SyncedChildren(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	info := hooks.RequestInfo{Op: "getChildren", Path: path}
	c, err := do(ctx, s, info, always, s.listingBehindSync(ctx, path))
	return c.names, c.stat, err
}

// listingBehindSync counts a listing only if the sync was answered before it, over the same connection. Otherwise it says
// that the connection was lost, and both are sent again.
func (s *Session) listingBehindSync(ctx context.Context, path string) starter[children] {
	return func(done func(children, error)) {
		traced := s.traceRequest(ctx, hooks.RequestInfo{Op: "sync", Path: path})
		over, full := s.present(), s.outward(path)
		var caughtUp atomic.Bool
		s.sync(ctx, full)(func(_ struct{}, err error) {
			caughtUp.Store(err == nil)
			s.withHooks(func() { traced(s.verdict(err)) })
		})
		s.listing(ctx, full, false)(func(c children, err error) {
			if err == nil && !(caughtUp.Load() && s.present() == over) {
				c, err = children{}, zk.ErrConnectionClosed
			}
			done(c, err)
		})
	}
}
