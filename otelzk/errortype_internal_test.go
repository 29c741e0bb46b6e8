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
