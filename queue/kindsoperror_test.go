package queue_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/turnstile-go/turnstile/queue"
)

func TestOpError(t *testing.T) {
	why := errors.New("no rights")
	op := func(op, path string, err error) error { return &queue.OpError{Op: op, Path: path, Err: err} }
	for _, c := range []struct {
		err  error
		text string
	}{
		{op("acquire", "/a", why), "acquire /a: no rights"},
		{op("unlock", "/a", op("release", "/a", why)), "unlock /a: no rights"},
		{op("unlock", "/a", op("release", "/a", op("lock", "/a", why))), "unlock /a: no rights"},
		{op("acquire", "/a, /b", op("acquire", "/b", why)), "acquire /a, /b: acquire /b: no rights"},
		{op("unlock", "/a", fmt.Errorf("late: %w", op("lock", "/a", why))), "unlock /a: late: lock /a: no rights"},
	} {
		if c.err.Error() != c.text || !errors.Is(c.err, why) {
			t.Errorf("%q, want %q; it matches the reason: %v", c.err, c.text, errors.Is(c.err, why))
		}
		var found *queue.OpError
		if !errors.As(c.err, &found) || found != c.err {
			t.Errorf("%v: errors.As finds %v", c.err, found)
		}
	}
}
