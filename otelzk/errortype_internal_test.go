package otelzk

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// typed is an error with an ErrorType.
type typed string

func (typed) Error() string       { return "typed" }
func (t typed) ErrorType() string { return string(t) }

// coded is an error with an ErrorCode.
type coded int32

func (coded) Error() string      { return "coded" }
func (c coded) ErrorCode() int32 { return int32(c) }

func TestErrorType(t *testing.T) {
	for _, c := range []struct {
		err         error
		typ, status string
	}{
		{context.DeadlineExceeded, errTimeout, ""},
		{session.ErrClosed, errClosed, ""},
		{session.ErrLost, errLost, ""},
		{session.ErrTooManyNodes, errTooManyNodes, ""},
		{session.ErrTooLong, errTooLong, ""},
		{fmt.Errorf("%w: %w", zk.ErrConnectionClosed, session.ErrTooLong), errTooLong, codeConnectionLoss},
		{session.ErrInvalid, errInvalid, ""},
		{queue.ErrConflict, errConflict, ""},
		{queue.ErrSequence, errSequence, ""},
		{errors.New("something else"), errOther, ""},
		{zk.ErrNoAuth, codeNoAuth, codeNoAuth},
		{zk.ErrNoNode, codeNoNode, codeNoNode},
		{zk.ErrConnectionClosed, codeConnectionLoss, codeConnectionLoss},
		{errors.Join(zk.ErrConnectionClosed, zk.ErrSessionMoved), codeSessionMoved, codeSessionMoved},
		{fmt.Errorf("%w: %w", zk.ErrConnectionClosed, coded(-127)), codeThrottledOp, codeThrottledOp},
		{session.ErrUnimplemented, codeUnimplemented, codeUnimplemented},
		{coded(-999), errOther, ""},
		{errors.New("unknown error: -127"), errOther, ""},
		{fmt.Errorf("%w: %w", session.ErrLost, typed(errSessionUncertain)), errSessionUncertain, ""},
		{fmt.Errorf("%w: %w", session.ErrLost, typed(errSessionExpired)), errSessionExpired, codeSessionExpired},
		{fmt.Errorf("%w: %w", session.ErrLost, typed(errNodeDeleted)), errNodeDeleted, ""},
		{fmt.Errorf("%w: %w", session.ErrLost, typed("whatever it likes")), errLost, ""},
	} {
		wrapped := fmt.Errorf("lock /a: %w", c.err)
		if typ, status := errorType(wrapped), statusCode(wrapped); typ != c.typ || status != c.status {
			t.Errorf("%v: %q and %q, want %q and %q", c.err, typ, status, c.typ, c.status)
		}
	}
}

func TestEndings(t *testing.T) {
	lost := fmt.Errorf("%w: %w", session.ErrLost, typed(errSessionUncertain))
	pending := fmt.Errorf("%w: %w", queue.ErrReleasePending, context.DeadlineExceeded)
	type acquired = session.AcquireResult
	for _, c := range []struct {
		what                       string
		got                        ending
		outcome, errorType, status string
	}{
		{"acquired", acquireEnding(acquired{}), outcomeAcquired, "", ""},
		{"busy", acquireEnding(acquired{Busy: true}), outcomeBusy, "", ""},
		{"cancelled", acquireEnding(acquired{Err: context.Canceled}), outcomeCanceled, "", ""},
		{"timed out", acquireEnding(acquired{Err: context.DeadlineExceeded}), outcomeTimeout, "", ""},
		{"closed", acquireEnding(acquired{Err: session.ErrClosed}), outcomeFailed, errClosed, ""},
		{"refused", acquireEnding(acquired{Err: zk.ErrNoAuth}), outcomeFailed, codeNoAuth, ""},
		{"released", releaseEnding(nil), outcomeReleased, "", ""},
		{"given up by Close", releaseEnding(session.ErrClosed), outcomeReleased, "", ""},
		{"pending", releaseEnding(pending), outcomePending, "", ""},
		{"lost", releaseEnding(lost), outcomeLost, errSessionUncertain, ""},
		{"release refused", releaseEnding(zk.ErrNoAuth), outcomeFailed, codeNoAuth, ""},
		{"answered", requestEnding("create", nil), "", "", ""},
		{"refused", requestEnding("create", zk.ErrNoAuth), "", codeNoAuth, codeNoAuth},
		{"routine refusal", requestEnding("create", zk.ErrNodeExists), "", "", codeNodeExists},
		{"request cancelled", requestEnding("create", context.Canceled), outcomeCanceled, "", ""},
		{"request lost", requestEnding("create", lost), "", errSessionUncertain, ""},
		{"request too late", requestEnding("create", context.DeadlineExceeded), "", errTimeout, ""},
	} {
		if c.got.outcome != c.outcome || c.got.errorType != c.errorType || c.got.status != c.status || (c.got.err != nil) != (c.errorType != "") {
			t.Errorf("%s: %+v", c.what, c.got)
		}
	}
}
