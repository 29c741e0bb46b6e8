package callout

import (
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Guarded calls a function of the user, and reports whether it has returned. A panic goes on in the caller.
func Guarded(f func()) (returned bool) {
	bad := apart(func(f func()) { go f() }, f)
	if bad != nil && bad.panicked != nil {
		panic(bad.panicked)
	}
	return bad == nil
}

// Retry returns a function that makes guarded BackOffs. If users, or one of its values, panics or ends its goroutine,
// the default wait takes its place.
func (h *Hooks) Retry(users, defaults func() backoff.BackOff) func() backoff.BackOff {
	return func() backoff.BackOff {
		var b backoff.BackOff
		if h.calls.call("WithRetry", func() { b = users() }) && b != nil {
			return &guardedBackOff{calls: &h.calls, users: b, spare: defaults()}
		}
		return defaults()
	}
}

type guardedBackOff struct {
	calls        *userCalls
	users, spare backoff.BackOff
}

func (b *guardedBackOff) NextBackOff() (d time.Duration) {
	if b.calls.call("NextBackOff", func() { d = b.users.NextBackOff() }) {
		return d
	}
	return b.spare.NextBackOff()
}

func (b *guardedBackOff) Reset() {
	b.calls.call("Reset of a BackOff", b.users.Reset)
	b.spare.Reset()
}
