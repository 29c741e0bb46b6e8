// Package listing tells tests when an acquisition has asked for the listing of a lock's directory
// that it was granted by. From that point on, what was changed before counts for it.
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

// Watch returns a context for an acquisition, and a function that returns when the latest
// listing of the directory which was answered had been asked for: 0 if there was none. The
// manager must have the [Hooks].
func Watch(ctx context.Context, dir string) (context.Context, func() int64) {
	l := &listing{dir: dir}
	return context.WithValue(ctx, key{}, l), l.sent.Load
}

// Hooks are those of a manager whose listings are watched, by a clock.
func Hooks(now func() int64) session.Trace {
	return session.Trace{Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
		l, ok := ctx.Value(key{}).(*listing)
		if !ok || r.Path != l.dir || r.Op != "getChildren" {
			return ctx, nil // the answer to a get can be that to another contender's
		}
		sent := now()
		return ctx, func(err error) {
			if err == nil {
				l.answered(sent)
			}
		}
	}}
}

// answered notes when a listing had been asked for, unless a later one is noted.
func (l *listing) answered(sent int64) {
	for {
		before := l.sent.Load()
		if before >= sent || l.sent.CompareAndSwap(before, sent) {
			return
		}
	}
}
