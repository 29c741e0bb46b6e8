package place

import (
	"context"
	"slices"
	"sync"

	"github.com/turnstile-go/turnstile/internal/news"
)

// Revocation is the request of another client to give a hold up. The zero value has not come. All methods may be called
// by several goroutines at once.
type Revocation struct {
	come news.News

	mu    sync.Mutex
	calls []*func() // to be called when it comes
}

// Tell says that it has come. Further calls do nothing.
func (r *Revocation) Tell() {
	r.come.Tell()
	r.mu.Lock()
	calls := r.calls
	r.calls = nil
	r.mu.Unlock()
	for _, f := range calls {
		(*f)()
	}
}

// Has reports whether it has come.
func (r *Revocation) Has() bool { return r.come.Has() }

// Wait returns a channel that is closed once it has come.
func (r *Revocation) Wait() <-chan struct{} { return r.come.Wait() }

// After has f called once it has come, at once if it has come already. f must not block. stop has f forgotten.
func (r *Revocation) After(f func()) (stop func()) {
	r.mu.Lock()
	come := r.come.Has()
	if !come {
		r.calls = append(r.calls, &f)
	}
	r.mu.Unlock()
	if come {
		f()
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls = slices.DeleteFunc(r.calls, func(one *func()) bool { return one == &f })
	}
}

// Revocation returns what tells that another client has asked for the lock.
func (l *Lease) Revocation() *Revocation { return &l.revocation }

// Work returns the context for work under the lease. It is that of Context, except that it also ends when another client
// asks for the lock, with a cause that matches ErrRevoked.
func (l *Lease) Work(parent context.Context) (context.Context, context.CancelFunc) {
	return Working(parent, &l.revocation, Failed("lock", l.t.q.dir, ErrRevoked), l.Context)
}

// Working is Work for a hold whose Context is given. cause is the cause of the end by a revocation.
func Working(
	parent context.Context, r *Revocation, cause error, within func(context.Context) (context.Context, context.CancelFunc),
) (context.Context, context.CancelFunc) {
	parent, end := context.WithCancelCause(parent)
	ctx, cancel := within(parent)
	stop := r.After(func() { end(cause) })
	return ctx, func() {
		stop()
		cancel()
		end(nil)
	}
}
