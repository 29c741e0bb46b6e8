package otelzk

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// ending says how an operation ended. Its span and its metric share it.
type ending struct {
	outcome   string // "": none
	errorType string // "" unless it failed
	status    string // the server's refusal, which may be no failure; "": none
	err       error  // of a failure
}

func (e ending) attributes() []attribute.KeyValue {
	kv := make([]attribute.KeyValue, 0, 8) // room for those that callers append
	if e.outcome != "" {
		kv = append(kv, attrOutcome.String(e.outcome))
	}
	if e.errorType != "" {
		kv = append(kv, semconv.ErrorTypeKey.String(e.errorType))
	}
	if e.status != "" {
		kv = append(kv, semconv.DBResponseStatusCode(e.status))
	}
	return kv
}

// acquireEnding is the ending of Lock and TryLock. It is no failure that another contender held the
// lock until the caller's context ended.
func acquireEnding(r session.AcquireResult) ending {
	switch {
	case r.Err != nil:
		return partEnding(r.Err)
	case r.Busy:
		return ending{outcome: outcomeBusy}
	}
	return ending{outcome: outcomeAcquired}
}

// unlessSettled returns the ending of a wait whose context was ctx. A job of package schedule ends its wait for the lock
// when another replica has run the tick. That is not the caller's cancellation.
func unlessSettled(ctx context.Context, end ending) ending {
	var own interface{ ErrorType() string }
	if end.outcome == outcomeCanceled && errors.As(context.Cause(ctx), &own) && own.ErrorType() == outcomeSettled {
		end.outcome = outcomeSettled
	}
	return end
}

// releaseEnding is the ending of Unlock, and of a hold. A release that is not confirmed yet is no
// failure, as it is certain.
func releaseEnding(err error) ending {
	switch {
	case err == nil, errors.Is(err, session.ErrClosed): // Close has released it
		return ending{outcome: outcomeReleased}
	case errors.Is(err, queue.ErrReleasePending):
		return ending{outcome: outcomePending}
	case errors.Is(err, session.ErrLost):
		return ending{outcome: outcomeLost, errorType: errorType(err), err: err}
	}
	return partEnding(err)
}

// partEnding is the ending of a part of another operation.
func partEnding(err error) ending {
	switch {
	case err == nil:
		return ending{}
	case errors.Is(err, context.Canceled):
		return ending{outcome: outcomeCanceled}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, queue.ErrMaxWait):
		return ending{outcome: outcomeTimeout}
	}
	return ending{outcome: outcomeFailed, errorType: errorType(err), err: err}
}

// requestEnding is the ending of a request, by the conventions for databases. If a deadline passes
// before the server answers, that is a failure, as far as the caller can tell.
func requestEnding(op string, err error) ending {
	switch {
	case err == nil:
		return ending{}
	case errors.Is(err, context.Canceled):
		return ending{outcome: outcomeCanceled}
	}
	status := statusCode(err)
	if op != "sync" && slices.Contains(routine, status) {
		return ending{status: status}
	}
	return ending{errorType: cmp.Or(status, errorType(err)), status: status, err: err}
}

// routine are the refusals that only describe the tree. Locks depend on them: the first contender in a directory learns
// that it does not exist, and creates it. Only the caller of a request knows whether such a refusal is good or bad news,
// so it is no error of the request.
var routine = []string{"NONODE", "NODEEXISTS", "BADVERSION", "NOTEMPTY"}
