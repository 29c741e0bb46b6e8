// Package listing tells tests when the listing of a lock's directory was requested by which an
// acquisition was granted. All earlier changes count for that acquisition.
package listing

import (
	"context"
	"sync/atomic"

	"github.com/turnstile-go/turnstile/session"
)

type key struct{}

type listing struct {
	dir  string
	sent atomic.Int64
}

// Watch returns a context for an acquisition, and a function. The function returns the time at which the
// latest answered listing of dir was requested, 0 if there was none. The manager must have the [Hooks].
func Watch(ctx context.Context, dir string) (context.Context, func() int64) {
	l := &listing{dir: dir}
	return context.WithValue(ctx, key{}, l), l.sent.Load
}

// Hooks are the hooks of a manager whose listings are watched. now is the clock.
func Hooks(now func() int64) session.Trace {
	return session.Trace{Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
		l, ok := ctx.Value(key{}).(*listing)
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
