package hold

import (
	"context"
	"errors"
	"reflect"
	"strings"

	"github.com/turnstile-go/turnstile/internal/place"
)

// withEnd returns the error of a Do, which has two parts: work is the error of its function, end
// that of giving the hold back. cause is what the lease says of its end.
func withEnd(ctx context.Context, work, end, cause error) error {
	switch {
	case end == nil:
		return work
	case work == nil:
		return end
	}
	if !errors.Is(end, cause) { // the hold was not lost, and its release was refused
		return Join(work, end)
	}
	return &endError{end: end, cause: cause, work: work, hide: ctx.Err() == nil}
}

// withCause returns the error of a function whose context, inside, may have ended because another client has asked for the
// lock. ctx is the caller's. A function that has returned no error has done its work while the lock was held.
func withCause(ctx, inside context.Context, work error) error {
	if work == nil || inside == nil {
		return work
	}
	cause := context.Cause(inside)
	if !errors.Is(cause, place.ErrRevoked) || errors.Is(context.Cause(ctx), place.ErrRevoked) { // an outer Do ends so, and says it
		return work
	}
	return &endError{end: cause, cause: cause, work: work, hide: ctx.Err() == nil}
}

// endError is the error of a Do whose function failed, and whose hold ended or was asked for before that.
//
// The end of a hold ends the context of the function, which then usually returns an error that
// matches context.Canceled. Programs take such an error for a caller that has gone away. So an
// endError does not match it, unless the caller's context has ended too.
type endError struct {
	end   error // of the hold
	cause error // of end, as the function's context has it
	work  error // of the function
	hide  bool  // do not match the errors of a context in work
}

// Error returns one line. It leaves out an error of the function that says no more than the end of the hold does, and the
// end of the hold if the function's error says it all.
func (e *endError) Error() string {
	end, work := oneLine(e.end.Error()), oneLine(e.work.Error())
	switch {
	case strings.Contains(end, work) || e.hide && endsContext(e.work):
		return end
	case strings.Contains(work, oneLine(e.cause.Error())):
		return work
	}
	return end + "; " + work
}

// Unwrap returns the error of the hold's end alone. Is and As look at the function's error.
func (e *endError) Unwrap() error { return e.end }

func (e *endError) Is(target error) bool {
	return !(e.hide && endsContext(target)) && errors.Is(e.work, target)
}

// As looks at the hold's end first, then at the function's error. It does not find the error of a
// context in the latter, which is a net.Error whose Timeout reports true.
func (e *endError) As(target any) bool {
	if errors.As(e.end, target) {
		return true
	}
	if !errors.As(e.work, target) {
		return false
	}
	found := reflect.ValueOf(target).Elem()
	if err, ok := found.Interface().(error); e.hide && ok && endsContext(err) {
		found.SetZero()
		return false
	}
	return true
}

// endsContext reports whether err is one of the two errors of an ended context. It does not look
// at what err wraps.
func endsContext(err error) bool {
	return err == context.Canceled || err == context.DeadlineExceeded //nolint:errorlint // see above
}
