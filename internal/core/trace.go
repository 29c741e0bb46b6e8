package core

import (
	"context"

	"github.com/turnstile-go/turnstile/hooks"
)

// traceRequest calls the hook for a request, and returns the function to call at its end.
func (s *Session) traceRequest(ctx context.Context, info hooks.RequestInfo) func(error) {
	hook := s.cfg.trace.Load().Request
	if hook == nil {
		return endNothing
	}
	info.Chroot = s.cfg.outward("/")
	s.mu.Lock()
	info.Server, info.Peer = s.link.to.Name(), s.link.to.Addr
	s.mu.Unlock()
	if _, done := hook(ctx, info); done != nil {
		return func(err error) { done(ofCaller(ctx, err)) }
	}
	return endNothing
}

func endNothing(error) {}

// traceRetry calls the hook for a request that is tried again.
func (s *Session) traceRetry(ctx context.Context, info hooks.RequestInfo, try int, cause error) {
	if hook := s.cfg.trace.Load().Retry; hook != nil {
		hook(ctx, hooks.RetryInfo{Op: info.Op, Try: try, Cause: cause})
	}
}

// lifeWith returns the session's life with the values of ctx, so that the hooks for work in the
// background know on whose behalf it runs. It allocates nothing if there are no hooks.
func (s *Session) lifeWith(ctx context.Context) context.Context {
	if later, ok := ctx.(*Later); ok {
		select {
		case <-later.known:
			ctx = later.within
		case <-s.life.Done():
		}
	}
	if hooks := s.cfg.trace.Load(); hooks.Request == nil && hooks.Retry == nil {
		return s.life
	}
	return valued{s.life, ctx}
}

// Later is a context for the hooks of a removal that begins before it is known what they are to get. They wait for Is.
type Later struct {
	context.Context // the caller's, without its end
	known           chan struct{}
	within          context.Context // set when known is closed
}

// NewLater returns a context with the values of ctx. Its user must call Is once.
func NewLater(ctx context.Context) *Later {
	return &Later{Context: context.WithoutCancel(ctx), known: make(chan struct{})}
}

// Is says what the hooks get.
func (c *Later) Is(within context.Context) {
	c.within = within
	close(c.known)
}

// valued is a context with further values.
type valued struct {
	context.Context
	values context.Context
}

func (v valued) Value(key any) any {
	// The values of the life come first. Package context finds a parent by one of them.
	if own := v.Context.Value(key); own != nil {
		return own
	}
	return v.values.Value(key)
}
