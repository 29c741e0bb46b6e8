package hold

import (
	"context"
	"errors"
	"reflect"
	"strings"
)

// withEnd returns the error of a Do: that of its function with that of the hold's end. cause is
// what the lease says of its end.
func withEnd(ctx context.Context, work, end, cause error) error {
	switch {
	case end == nil:
		return work
	case work == nil:
		return end
	}
	if !errors.Is(end, cause) { // a release was refused, after a hold that lasted
		return Join(work, end)
	}
	return &endError{end: end, cause: cause, work: work, hide: ctx.Err() == nil}
}

// endError is the error of a Do whose function failed and whose hold ended before that was done.
//
// The end of a hold ends the context of the function, which then usually returns
// context.Canceled, or something that wraps it. Programs take that for a caller who has gone
// away. So an endError does not match it, unless the caller's context has ended too.
type endError struct {
	end   error // of the hold
	cause error // of the end, which the function may have returned as well
	work  error // of the function
	hide  bool  // what work says of the end of a context
}

// Error returns one line, with the cause once.
func (e *endError) Error() string {
	end, work := oneLine(e.end.Error()), oneLine(e.work.Error())
	work = strings.Trim(strings.ReplaceAll(work, e.cause.Error(), ""), " :;,")
	if work == "" || strings.Contains(end, work) || e.hide && endsContext(e.work) {
		return end
	}
	return end + "; " + work
}

// Unwrap returns the hold's end alone; Is and As know the function's error.
func (e *endError) Unwrap() error { return e.end }

func (e *endError) Is(target error) bool {
	return !(e.hide && endsContext(target)) && errors.Is(e.work, target)
}

// As looks at the end before it looks at the function's error. Of that it does not give out the
// error of a context, which is a net.Error that says Timeout.
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

// endsContext reports whether an error is that of a context that has ended, and not one that
// wraps it.
func endsContext(err error) bool {
	return err == context.Canceled || err == context.DeadlineExceeded
}
