//go:build linux

package nemesis

import (
	"context"
	"sync/atomic"

	"github.com/turnstile-go/turnstile/session"
)

type listingKey struct{}

type listing struct {
	dir  string
	sent atomic.Int64
}

// watchListing returns a context for an acquisition, and a function. The function returns the time at which the
// latest answered listing of dir was requested, 0 if there was none. The manager must have the listingHooks. So a judge knows when the listing was
// requested by which an acquisition was granted: all earlier changes count for it.
func watchListing(ctx context.Context, dir string) (context.Context, func() int64) {
	l := &listing{dir: dir}
	return context.WithValue(ctx, listingKey{}, l), l.sent.Load
}

// listingHooks are the hooks of a manager whose listings are watched.
func listingHooks() session.Trace {
	return session.Trace{Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
		l, ok := ctx.Value(listingKey{}).(*listing)
		if !ok || r.Path != l.dir || r.Op != "getChildren" {
			return ctx, nil // a get may share the request of another contender
		}
		sent := now()
		return ctx, func(err error) {
			if err == nil {
				l.answered(sent)
			}
		}
	}}
}

// answered records when an answered listing was requested, unless a later one is recorded.
func (l *listing) answered(sent int64) {
	for {
		before := l.sent.Load()
		if before >= sent || l.sent.CompareAndSwap(before, sent) {
			return
		}
	}
}
