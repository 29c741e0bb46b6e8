package session

import (
	"time"

	"github.com/cenkalti/backoff/v5"
)

// guarded calls a function of the user in a goroutine of its own, because the function can end its
// goroutine by runtime.Goexit, which nothing in the same goroutine survives. It reports whether the
// function has returned. A panic goes on in the caller.
func guarded[T any](f func() T) (v T, returned bool) {
	var panicked any
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if !returned {
				panicked = recover() // nil after Goexit
			}
		}()
		v = f()
		returned = true
	}()
	<-ended
	if panicked != nil {
		panic(panicked)
	}
	return v, returned
}

// guardedRetry returns a function that makes guarded BackOffs. If users, or one of its values, ends its
// goroutine, the default wait takes its place.
func guardedRetry(users, defaults func() backoff.BackOff) func() backoff.BackOff {
	return func() backoff.BackOff {
		if b, ok := guarded(users); ok && b != nil {
			return &guardedBackOff{users: b, spare: defaults()}
		}
		return defaults()
	}
}

type guardedBackOff struct{ users, spare backoff.BackOff }

func (b *guardedBackOff) NextBackOff() time.Duration {
	if d, ok := guarded(b.users.NextBackOff); ok {
		return d
	}
	return b.spare.NextBackOff()
}

func (b *guardedBackOff) Reset() {
	guarded(func() struct{} { b.users.Reset(); return struct{}{} })
	b.spare.Reset()
}
