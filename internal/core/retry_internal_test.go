package core

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
)

func TestClassify(t *testing.T) {
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
		{errorOf(codec.CodeUnimplemented), answered},
		{errorOf(codec.CodeBadArguments), answered},
		{errorOf(codec.CodeMarshallingError), answered},
		{zk.ErrSessionExpired, sessionOver},
		{zk.ErrSessionMoved, refused},
		{errorOf(codec.CodeThrottled), refused},
		{zk.ErrConnectionClosed, replyLost},
		{fmt.Errorf("x: %w", zk.ErrConnectionClosed), replyLost},
		{errorOf(codec.CodeConnectionLoss), replyLost},
		{fmt.Errorf("x: %w", errorOf(codec.CodeOperationTimeout)), replyLost},
	} {
		if got := classify(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// Every code of KeeperException.Code in ZooKeeper 3.5 to 3.9 has an error that can be matched, or a name
// and its number.
func TestEveryCodeHasAName(t *testing.T) {
	for code, want := range map[int32]any{
		-1: "SystemError", -2: "RuntimeInconsistency", -3: "DataInconsistency", -4: "ConnectionLoss",
		-5: "MarshallingError", -6: ErrUnimplemented, -7: "OperationTimeout", -8: zk.ErrBadArguments,
		-12: "UnknownSession", -13: "NewConfigNoQuorum", -14: "ReconfigInProgress", -100: zk.ErrAPIError,
		-101: zk.ErrNoNode, -102: zk.ErrNoAuth, -103: zk.ErrBadVersion, -108: zk.ErrNoChildrenForEphemerals,
		-110: zk.ErrNodeExists, -111: zk.ErrNotEmpty, -112: zk.ErrSessionExpired, -113: "InvalidCallback",
		-114: zk.ErrInvalidACL, -115: zk.ErrAuthFailed, -118: zk.ErrSessionMoved, -119: "NotReadOnly",
		-120: "EphemeralOnLocalSession", -121: "NoWatcher", -122: "RequestTimeout", -123: zk.ErrReconfigDisabled,
		-124: "SessionClosedRequireSaslAuth", -125: "QuotaExceeded", -127: "ThrottledOp",
	} {
		err := fmt.Errorf("create /a: %w", errorOf(code))
		var coded interface{ ErrorCode() int32 }
		switch want := want.(type) {
		case error:
			if !errors.Is(err, want) {
				t.Errorf("%d: %v, want %v", code, err, want)
			}
		case string:
			if !errors.As(err, &coded) || coded.ErrorCode() != code || !strings.Contains(err.Error(), want+": ") {
				t.Errorf("%d: %v, want %s", code, err, want)
			}
		}
	}
}

// A code that is not known keeps go-zookeeper's text, and tells its number.
func TestErrorOf(t *testing.T) {
	var coded interface{ ErrorCode() int32 }
	for code, text := range map[int32]string{-999: "unknown error: -999", 4711: "unknown error: 4711"} {
		err := fmt.Errorf("create /a: %w", errorOf(code))
		if !errors.As(err, &coded) || coded.ErrorCode() != code || err.Error() != "create /a: "+text {
			t.Errorf("%d: %v", code, err)
		}
	}
	if err := errorOf(codec.CodeUnimplemented); err != ErrUnimplemented {
		t.Errorf("unimplemented: %v", err)
	}
}

// If the session has ended, its error replaces that of the connection.
func TestVerdict(t *testing.T) {
	s := bareSession(t, newFakeConfig(t))
	throttled := errorOf(codec.CodeThrottled)
	if err := s.verdict(throttled); !errors.Is(err, zk.ErrConnectionClosed) || !errors.Is(err, throttled) {
		t.Errorf("an error that is worth another try: %v", err)
	}
	if err := s.verdict(zk.ErrNoNode); err != zk.ErrNoNode {
		t.Errorf("an answer: %v", err)
	}
	if err := s.verdict(zk.ErrSessionExpired); !errors.Is(err, ErrLost) || !s.isMarked() {
		t.Errorf("expired: %v", err)
	}
	if err := s.verdict(zk.ErrConnectionClosed); !errors.Is(err, ErrLost) {
		t.Errorf("after the end: %v", err)
	}
	if err := s.mark(ErrClosed); !errors.Is(err, ErrLost) {
		t.Errorf("ended twice: %v, want the first cause", err)
	}
}

func TestUncertain(t *testing.T) {
	for err, want := range map[error]bool{
		zk.ErrConnectionClosed: true, lossError(1, lossClock): true, closedError(1): true,
		zk.ErrNoNode: false, ErrTooManyNodes: false, ErrInvalid: false,
	} {
		if Uncertain(fmt.Errorf("x: %w", err)) != want {
			t.Errorf("%v: %v, want %v", err, !want, want)
		}
	}
}
