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

// endError is the error of a Do whose function has failed after its lease was lost, or after another client had asked
// for the lock. It matches what end and work match, but the errors of a context only as Do of zklock.Mutex says.
type endError struct {
	end, cause error // cause is that of the function's context
	work       error
	hide       bool // of a context, in work
}

func withEnd(ctx context.Context, work, end, cause error) error {
	if work == nil || end == nil || !errors.Is(end, cause) { // the last: its release was refused
		return Join(work, end)
	}
	return &endError{end: end, cause: cause, work: work, hide: ctx.Err() == nil}
}

func withRevocation(ctx, inside context.Context, work error) error {
	cause := context.Cause(inside)
	if work == nil || !errors.Is(cause, queue.ErrRevoked) || errors.Is(context.Cause(ctx), queue.ErrRevoked) { // an outer Do says it
		return work
	}
	return &endError{end: cause, cause: cause, work: work, hide: ctx.Err() == nil}
}

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

// Unwrap returns the lease's end alone.
func (e *endError) Unwrap() error { return e.end }

func (e *endError) Is(target error) bool {
	return !(e.hide && endsContext(target)) && errors.Is(e.work, target)
}

// As hides errors of a context as Is does. One of them is a net.Error too.
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

func endsContext(err error) bool {
	return err == context.Canceled || err == context.DeadlineExceeded //nolint:errorlint // see above
}

// Join is [errors.Join] with a text of one line.
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
