package share

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
)

// endError is the error of a Do whose function has failed after its lease was lost, or after another client had asked for the
// lock. It matches what end and work match, with one exception. The end of a lease ends the context of the function, which then
// usually returns an error that matches [context.Canceled]. Programs take such an error for a caller that has gone away. So an
// endError does not match it, unless the caller's context has ended too.
type endError struct {
	end, cause error // of the lease; cause is what the function's context has
	work       error // of the function
	hide       bool  // do not match the errors of a context in work
}

// withEnd adds to the error of a Do's function the end of its lease: the error of giving it back, and what the lease says.
func withEnd(ctx context.Context, work, end, cause error) error {
	if work == nil || end == nil || !errors.Is(end, cause) { // the last: the lease was not lost, and its release was refused
		return Join(work, end)
	}
	return &endError{end: end, cause: cause, work: work, hide: ctx.Err() == nil}
}

// withRevocation adds to the error of a Do's function that its context has ended because another client has asked for the lock.
func withRevocation(ctx, inside context.Context, work error) error {
	cause := context.Cause(inside)
	if work == nil || !errors.Is(cause, queue.ErrRevoked) || errors.Is(context.Cause(ctx), queue.ErrRevoked) { // an outer Do says it
		return work
	}
	return &endError{end: cause, cause: cause, work: work, hide: ctx.Err() == nil}
}

// Error says in one line what each of the two says, unless the other has said it.
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

// Unwrap returns the error of the lease's end alone.
func (e *endError) Unwrap() error { return e.end }

// Is looks at the function's error.
func (e *endError) Is(target error) bool {
	return !(e.hide && endsContext(target)) && errors.Is(e.work, target)
}

// As looks at the lease's end first, then at the function's error. The error of a context, which it does not find there, is a
// net.Error.
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

// endsContext reports whether err itself is one of the two errors of an ended context.
func endsContext(err error) bool {
	return err == context.Canceled || err == context.DeadlineExceeded //nolint:errorlint // see above
}

// Join returns the errors that are not nil as one, like [errors.Join], but with a text of one line.
func Join(errs ...error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return &joined{errs}
}

type joined struct{ errs []error }

func (j *joined) Unwrap() []error { return j.errs }

// Error says each thing once, also that arguments are invalid.
func (j *joined) Error() string {
	var texts []string
	invalid := misuse.ErrInvalid.Error() + ": "
	for _, err := range j.errs {
		text := oneLine(err.Error())
		if len(texts) > 0 && strings.HasPrefix(texts[0], invalid) {
			text = strings.TrimPrefix(text, invalid)
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }
