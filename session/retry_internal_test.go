package session

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/wire"
)

func TestClassify(t *testing.T) {
	s := bareSession(t, newFakeConfig(t))
	for _, c := range []struct {
		err  error
		want errorKind
	}{
		{nil, answered},
		{zk.ErrNoNode, answered},
		{zk.ErrNodeExists, answered},
		{zk.ErrNoAuth, answered},
		{zk.ErrAuthFailed, answered},
		{zk.ErrBadVersion, answered},
		{zk.ErrNotEmpty, answered},
		{zk.ErrInvalidACL, answered},
		{errorOf(wire.CodeUnimplemented), answered},
		{errorOf(wire.CodeBadArguments), answered},
		{errorOf(wire.CodeMarshallingError), answered},
		{zk.ErrSessionExpired, sessionOver},
		{zk.ErrSessionMoved, refused},
		{errorOf(wire.CodeThrottled), refused},
		{zk.ErrConnectionClosed, replyLost},
		{fmt.Errorf("x: %w", zk.ErrConnectionClosed), replyLost},
		{errorOf(wire.CodeConnectionLoss), replyLost},
		{fmt.Errorf("x: %w", errorOf(wire.CodeOperationTimeout)), replyLost},
		{s.rejectReply(errors.New("it cannot be true")), replyLost},
	} {
		if got := classify(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// A code without an error of its own keeps go-zookeeper's text, and tells its number.
func TestErrorOf(t *testing.T) {
	var coded interface{ ErrorCode() int32 }
	for code, text := range map[int32]string{-2: "unknown error: -2", wire.CodeThrottled: "unknown error: -127"} {
		err := fmt.Errorf("create /a: %w", errorOf(code))
		if !errors.As(err, &coded) || coded.ErrorCode() != code || err.Error() != "create /a: "+text {
			t.Errorf("%d: %v", code, err)
		}
	}
	if err := errorOf(wire.CodeUnimplemented); err != ErrUnimplemented {
		t.Errorf("unimplemented: %v", err)
	}
}

// If the session has ended, its error replaces that of the connection.
func TestVerdict(t *testing.T) {
	s := bareSession(t, newFakeConfig(t))
	throttled := errorOf(wire.CodeThrottled)
	if err := s.verdict(throttled); !errors.Is(err, zk.ErrConnectionClosed) || !errors.Is(err, throttled) {
		t.Errorf("an error that is worth another try: %v", err)
	}
	if err := s.verdict(zk.ErrNoNode); err != zk.ErrNoNode {
		t.Errorf("an answer: %v", err)
	}
	if err := s.verdict(zk.ErrSessionExpired); !errors.Is(err, ErrLost) || s.life.Err() == nil {
		t.Errorf("expired: %v", err)
	}
	if err := s.verdict(zk.ErrConnectionClosed); !errors.Is(err, ErrLost) {
		t.Errorf("after the end: %v", err)
	}
	if err := s.end(ErrClosed); !errors.Is(err, ErrLost) {
		t.Errorf("ended twice: %v, want the first cause", err)
	}
}

func TestUncertain(t *testing.T) {
	for err, want := range map[error]bool{
		zk.ErrConnectionClosed: true, lossError(1, lossClock): true, closedError(1): true,
		zk.ErrNoNode: false, ErrTooManyNodes: false, ErrInvalid: false,
	} {
		if uncertain(fmt.Errorf("x: %w", err)) != want {
			t.Errorf("%v: %v, want %v", err, !want, want)
		}
	}
}
