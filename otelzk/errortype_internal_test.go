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
		{context.DeadlineExceeded, "timeout", ""},
		{session.ErrClosed, "closed", ""},
		{session.ErrLost, "lost", ""},
		{session.ErrTooManyNodes, "too_many_nodes", ""},
		{session.ErrTooLong, "too_long", ""},
		{fmt.Errorf("%w: %w", zk.ErrConnectionClosed, session.ErrTooLong), "too_long", "CONNECTIONLOSS"},
		{session.ErrInvalid, "invalid", ""},
		{queue.ErrConflict, "conflict", ""},
		{queue.ErrSequence, "sequence_used_up", ""},
		{errors.New("something else"), "_OTHER", ""},
		{zk.ErrNoAuth, "NOAUTH", "NOAUTH"},
		{zk.ErrNoNode, "NONODE", "NONODE"},
		{zk.ErrConnectionClosed, "CONNECTIONLOSS", "CONNECTIONLOSS"},
		{errors.Join(zk.ErrConnectionClosed, zk.ErrSessionMoved), "SESSIONMOVED", "SESSIONMOVED"},
		{fmt.Errorf("%w: %w", zk.ErrConnectionClosed, coded(-127)), "THROTTLEDOP", "THROTTLEDOP"},
		{session.ErrUnimplemented, "UNIMPLEMENTED", "UNIMPLEMENTED"},
		{coded(-999), "_OTHER", ""},
		{errors.New("unknown error: -127"), "_OTHER", ""},
		{fmt.Errorf("%w: %w", session.ErrLost, typed("session_uncertain")), "session_uncertain", ""},
		{fmt.Errorf("%w: %w", session.ErrLost, typed("session_expired")), "session_expired", "SESSIONEXPIRED"},
		{fmt.Errorf("%w: %w", session.ErrLost, typed("node_deleted")), "node_deleted", ""},
		{fmt.Errorf("%w: %w", session.ErrLost, typed("whatever it likes")), "lost", ""},
	} {
		wrapped := fmt.Errorf("lock /a: %w", c.err)
		if typ, status := errorType(wrapped), statusCode(wrapped); typ != c.typ || status != c.status {
			t.Errorf("%v: %q and %q, want %q and %q", c.err, typ, status, c.typ, c.status)
		}
	}
}

func TestEndings(t *testing.T) {
	lost := fmt.Errorf("%w: %w", session.ErrLost, typed("session_uncertain"))
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
		{"closed", acquireEnding(acquired{Err: session.ErrClosed}), outcomeFailed, "closed", ""},
		{"refused", acquireEnding(acquired{Err: zk.ErrNoAuth}), outcomeFailed, "NOAUTH", ""},
		{"released", releaseEnding(nil), outcomeReleased, "", ""},
		{"given up by Close", releaseEnding(session.ErrClosed), outcomeReleased, "", ""},
		{"pending", releaseEnding(pending), outcomePending, "", ""},
		{"lost", releaseEnding(lost), outcomeLost, "session_uncertain", ""},
		{"release refused", releaseEnding(zk.ErrNoAuth), outcomeFailed, "NOAUTH", ""},
		{"answered", requestEnding("create", nil), "", "", ""},
		{"refused", requestEnding("create", zk.ErrNoAuth), "", "NOAUTH", "NOAUTH"},
		{"routine refusal", requestEnding("create", zk.ErrNodeExists), "", "", "NODEEXISTS"},
		{"request cancelled", requestEnding("create", context.Canceled), outcomeCanceled, "", ""},
		{"request lost", requestEnding("create", lost), "", "session_uncertain", ""},
		{"request too late", requestEnding("create", context.DeadlineExceeded), "", "timeout", ""},
	} {
		if c.got.outcome != c.outcome || c.got.errorType != c.errorType || c.got.status != c.status || (c.got.err != nil) != (c.errorType != "") {
			t.Errorf("%s: %+v", c.what, c.got)
		}
	}
}
