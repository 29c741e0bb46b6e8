//go:build linux

package zklock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/pausetest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// A process that was paused for longer than its session lives sees at its first look that its locks are lost.
// That holds for the context of every kind of Do, for that of a lease, for their Done channels, and for contexts
// that are derived from them after the pause.
func TestPausedProcess(t *testing.T) {
	pausetest.Run(t, func(server, dir string) { bePaused(t, server, dir) })
}

// The same holds if the machine was suspended, and the clock by which timers fire has not moved.
func TestSuspendedProcess(t *testing.T) {
	pausetest.Suspend(t, "./zklock", true, func(server, dir string) { bePaused(t, server, dir) })
}

// A process that cannot know of the suspension believes in its lock. Otherwise TestSuspendedProcess would show
// nothing.
func TestSuspensionUnknown(t *testing.T) {
	pausetest.Suspend(t, "./zklock", false, func(server, dir string) {
		l, err := newMutex(t, testserver.Connect(t, server, session.WithTimeout(pausetest.Timeout)), dir).Acquire(t.Context())
		must(t, err)
		pausetest.Pause(t)
		if err := l.Err(); err != nil {
			t.Errorf("the first look: %v", err)
		}
	})
}

// bePaused is what the process does that is paused.
func bePaused(t *testing.T, server, dir string) {
	type do func(ctx context.Context, f func(context.Context) error) error
	mutex := func(m *session.Manager, path string) do { return newMutex(t, m, path).Do }
	locks := map[string]struct {
		lock func(m *session.Manager, path string) do
		look func(ctx context.Context) error
	}{
		"Do":    {mutex, context.Context.Err},
		"cause": {mutex, context.Cause},
		"done": {mutex, func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			default:
				return nil
			}
		}},
		"derived": {mutex, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			return ctx.Err()
		}},
		"Multi": {func(m *session.Manager, path string) do {
			multi, err := zklock.Multi(newMutex(t, m, path+"/a"), newMutex(t, m, path+"/b"))
			must(t, err)
			return multi.Do
		}, context.Context.Err},
		"Do of a reader": {func(m *session.Manager, path string) do {
			rw, err := rwlock.New(m, path)
			must(t, err)
			return rw.Reader().Do
		}, context.Context.Err},
		"semaphore": {func(m *session.Manager, path string) do {
			s, err := semaphore.New(m, path, 3)
			must(t, err)
			return s.Do
		}, context.Context.Err},
		"lease": {func(m *session.Manager, path string) do {
			return func(ctx context.Context, f func(context.Context) error) error {
				l, err := newMutex(t, m, path).Acquire(ctx)
				must(t, err)
				ctx, cancel := l.Context(ctx)
				defer cancel()
				_ = f(ctx)
				return l.Err()
			}
		}, context.Context.Err},
	}
	// Each look has a session of its own, so that none profits from another.
	inside := make(map[string]context.Context)
	looked := make(chan struct{})
	ended := make(chan error)
	for name, l := range locks {
		m := testserver.Connect(t, server, session.WithTimeout(pausetest.Timeout))
		in := make(chan context.Context)
		go func() {
			ended <- l.lock(m, dir+"/"+name)(context.Background(), func(ctx context.Context) error {
				in <- ctx
				<-looked
				return nil
			})
		}()
		inside[name] = <-in
	}
	pausetest.Pause(t)
	first := make(map[string]error)
	for name, l := range locks {
		first[name] = l.look(inside[name])
	}
	close(looked)
	for name, err := range first {
		if err == nil {
			t.Errorf("%s: the first look says that the lock is held", name)
		}
		cause := context.Cause(inside[name])
		wantErr(t, name, cause, session.ErrLost)
		if !strings.Contains(cause.Error(), "this process stood still for ") {
			t.Errorf("%s: %v", name, cause)
		}
	}
	for range locks {
		wantErr(t, "the end", <-ended, session.ErrLost)
	}
}
