package locktest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// A way is one of the calls that take a lock.
type way struct {
	name string
	try  bool
	take func(context.Context) (*hold, error) // queue.ErrBusy if a try says so
}

// A hold is what a call has taken.
type hold struct {
	ctx     context.Context             // of the function of a Do, or of the lease; nil for Lock
	done    <-chan struct{}             // closed at its end
	err     func() error                // why it is over; nil while it is held
	end     func() error                // gives it back
	release func(context.Context) error // the same, for as long as a context lasts; nil but for a lease
	revoked <-chan struct{}             // nil for Lock and Do
	finish  chan<- error                // ends the function of a Do with this error, before end
}

// ways returns the ways that the lock has. The first one waits.
func (p *process) ways() (all []way) {
	l := p.lock
	add := func(has bool, name string, take func(context.Context) (*hold, error)) {
		if has {
			all = append(all, way{name, strings.HasPrefix(name, "Try"), take})
		}
	}
	add(l.Acquire != nil, "Acquire", func(ctx context.Context) (*hold, error) { return p.byLease(ctx, l.Acquire) })
	add(l.Lock != nil, "Lock", func(ctx context.Context) (*hold, error) { return l.byUnlock(l.Lock(ctx)) })
	add(l.Do != nil, "Do", func(ctx context.Context) (*hold, error) {
		return p.byDo(ctx, func(ctx context.Context, f func(context.Context) error) (bool, error) {
			return true, l.Do(ctx, f)
		})
	})
	add(l.TryAcquire != nil, "TryAcquire", func(ctx context.Context) (*hold, error) { return p.byLease(ctx, l.TryAcquire) })
	add(l.TryLock != nil, "TryLock", func(ctx context.Context) (*hold, error) {
		got, err := l.TryLock(ctx)
		if !got && err == nil {
			err = queue.ErrBusy
		}
		return l.byUnlock(err)
	})
	add(l.TryDo != nil, "TryDo", func(ctx context.Context) (*hold, error) { return p.byDo(ctx, l.TryDo) })
	return all
}

// waiting returns the ways that wait.
func (p *process) waiting() []way {
	return slices.DeleteFunc(p.ways(), func(w way) bool { return w.try })
}

func (p *process) byLease(ctx context.Context, acquire func(context.Context) (Lease, error)) (*hold, error) {
	l, err := acquire(ctx)
	if err != nil {
		return nil, err
	}
	own, cancel := l.Context(p.Context())
	release := func(ctx context.Context) error {
		defer cancel()
		return l.Release(ctx)
	}
	end := func() error { return release(p.Context()) }
	return &hold{ctx: own, done: l.Done(), err: l.Err, revoked: l.Revoked(), release: release, end: end}, nil
}

func (l Lock) byUnlock(err error) (*hold, error) {
	if err != nil {
		return nil, err
	}
	h := &hold{end: l.Unlock, err: func() error {
		if l.Held() {
			return nil
		}
		return session.ErrLost
	}}
	if l.Done != nil {
		h.done = l.Done()
	}
	return h, nil
}

func (p *process) byDo(ctx context.Context, do func(context.Context, func(context.Context) error) (bool, error)) (*hold, error) {
	granted, finish, result := make(chan context.Context, 1), make(chan error, 1), make(chan error, 1)
	go func() {
		ran, err := do(ctx, func(ctx context.Context) error {
			granted <- ctx
			select {
			case err := <-finish:
				return err
			case <-p.Context().Done():
				return nil
			}
		})
		if !ran && err == nil {
			err = queue.ErrBusy
		}
		result <- err
	}()
	select {
	case own := <-granted:
		return &hold{ctx: own, done: own.Done(), err: func() error { return context.Cause(own) }, finish: finish, end: func() error {
			select {
			case finish <- nil:
			default: // it has its error already
			}
			return <-result
		}}, nil
	case err := <-result:
		return nil, err
	}
}

// A taking is a call in a goroutine of its own.
type taking struct{ result <-chan taken }

type taken struct {
	*hold
	error
}

// begin calls a way in a goroutine.
func (w way) begin(ctx context.Context) taking {
	ch := make(chan taken, 1)
	go func() {
		h, err := w.take(ctx)
		ch <- taken{h, err}
	}()
	return taking{ch}
}

// now returns the outcome of a call that has returned.
func (c taking) now() (h *hold, err error, returned bool) {
	select {
	case o := <-c.result:
		return o.hold, o.error, true
	default:
		return nil, nil, false
	}
}

// wait returns the outcome of a call.
func (c taking) wait() (*hold, error) {
	select {
	case o := <-c.result:
		return o.hold, o.error
	case <-time.After(2 * bubble.Longest):
		return nil, errors.New("it does not return")
	}
}
