package otelzk

import (
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/otel/attribute"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// ending is how something ended: the same for its span and its metric.
type ending struct {
	outcome   string // "" for none to speak of
	errorType string // "" unless it failed
	status    string // what the server answered; "" unless it refused, which may be no failure
	err       error  // of a failure
}

func (e ending) attributes() []attribute.KeyValue {
	kv := make([]attribute.KeyValue, 0, 8) // some are added to it
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

// acquireEnding is that of Lock and TryLock. It is not a failure that another holder had the
// lock until the caller went away or its deadline passed.
func acquireEnding(r session.AcquireResult) ending {
	switch {
	case r.Busy:
		return ending{outcome: outcomeBusy}
	case r.Err == nil:
		return ending{outcome: outcomeAcquired}
	}
	return partEnding(r.Err)
}

// releaseEnding is that of Unlock, and of a hold. A release that is not yet confirmed is
// certain all the same.
func releaseEnding(err error) ending {
	switch {
	case err == nil, errors.Is(err, session.ErrClosed): // Close gives up what is held
		return ending{outcome: outcomeReleased}
	case errors.Is(err, queue.ErrReleasePending):
		return ending{outcome: outcomePending}
	case errors.Is(err, session.ErrLost):
		return ending{outcome: outcomeLost, errorType: errorType(err), err: err}
	}
	return partEnding(err)
}

// partEnding is that of what is part of something else, which has the outcome.
func partEnding(err error) ending {
	switch {
	case err == nil:
		return ending{}
	case errors.Is(err, context.Canceled):
		return ending{outcome: outcomeCanceled}
	case errors.Is(err, context.DeadlineExceeded):
		return ending{outcome: outcomeTimeout}
	}
	return ending{outcome: outcomeFailed, errorType: errorType(err), err: err}
}

// requestEnding is that of a request, by the conventions of databases. A deadline that passes
// while the server is to answer is a failure of the server's, as far as the caller can tell.
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

// routine are the refusals that say how the tree is, by operation. A lock lives on them: the
// first contender in a directory finds that it is not there, and makes it. Whether one is good
// or bad news, only the caller of the request knows; an error span is for what went wrong.
var routine = map[string][]string{
	"create":      {codeNoNode, codeNodeExists},
	"delete":      {codeNoNode, codeBadVersion, codeNotEmpty},
	"getChildren": {codeNoNode},
	"getData":     {codeNoNode},
	"multi":       {codeNoNode, codeNodeExists, codeBadVersion, codeNotEmpty},
	"setData":     {codeNoNode, codeBadVersion},
}
