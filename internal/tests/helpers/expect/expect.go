// Package expect has what the tests of several packages expect of errors and channels.
package expect

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// Patient returns a context for operations that take a moment, or longer on a busy machine.
func Patient(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testserver.Bound())
	tb.Cleanup(cancel)
	return ctx
}

// NoError fails the test if err is not nil. Only the test's goroutine may call it.
func NoError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Match checks that an error matches all of targets.
func Match(tb testing.TB, what string, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Errorf("%s: error %v, want one that matches %q", what, err, target)
		}
	}
}

// Receive returns the next value of ch, and fails the test if there is none in time.
func Receive[T any](tb testing.TB, what string, ch <-chan T) T {
	tb.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(testserver.Patience):
		tb.Fatalf("%s: nothing within %v", what, testserver.Patience)
		panic("unreachable")
	}
}

// Closed reports whether a channel is closed, or has a value.
func Closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// Err returns the error of a call whose other result does not matter.
func Err[T any](_ T, err error) error { return err }

// Requests checks how many requests a server has got that match.
func Requests(tb testing.TB, what string, srv *zktest.Server, m zktest.Match, want int) {
	tb.Helper()
	if n := srv.Count(m); n != want {
		tb.Errorf("%s: %d requests, want %d", what, n, want)
	}
}

// Go calls f in a goroutine, and returns where its error goes.
func Go(f func() error) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	return ended
}
