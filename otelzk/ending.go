package otelzk

import (
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/otel/attribute"

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
		kv = append(kv, attribute.String(attrOutcome, e.outcome))
	}
	if e.errorType != "" {
		kv = append(kv, attribute.String(attrErrorType, e.errorType))
	}
	if e.status != "" {
		kv = append(kv, attribute.String(attrDBStatus, e.status))
	}
	return kv
}

// acquireEnding is the ending of Lock and TryLock. It is no failure that another contender held the
// lock until the caller's context ended.
func acquireEnding(r session.AcquireResult) ending {
	switch {
	case r.Busy:
		return ending{outcome: outcomeBusy}
	case r.Err == nil:
		return ending{outcome: outcomeAcquired}
	}
	return partEnding(r.Err)
}

// unlessSettled returns the ending of a wait whose context was ctx. A job of package schedule ends its wait for the lock when
// it has learned that another replica has run the tick. That is not the caller's cancellation.
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
	switch {
	case slices.Contains(routine[op], status):
		return ending{status: status}
	case status != "":
		return ending{errorType: status, status: status, err: err}
	}
	return ending{errorType: errorType(err), err: err}
}

// routine has, by operation, the refusals that only describe the tree. Locks depend on them: the first
// contender in a directory learns that it does not exist, and creates it. Only the caller of a request
// knows whether such a refusal is good or bad news, so it is no error of the request.
var routine = map[string][]string{
	"create":      {codeNoNode, codeNodeExists},
	"delete":      {codeNoNode, codeBadVersion, codeNotEmpty},
	"exists":      {codeNoNode},
	"getACL":      {codeNoNode},
	"getChildren": {codeNoNode},
	"getData":     {codeNoNode},
	"multi":       {codeNoNode, codeNodeExists, codeBadVersion, codeNotEmpty},
	"setData":     {codeNoNode, codeBadVersion},
}
