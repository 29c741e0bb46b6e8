package session

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
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
		{errors.New("unknown error: -6"), answered},
		{errors.New("unknown error: -8"), answered},
		{zk.ErrSessionExpired, sessionOver},
		{zk.ErrClosing, sessionOver},
		{zk.ErrNoServer, refused},
		{zk.ErrSessionMoved, refused},
		{errors.New("unknown error: -127"), refused},
		{zk.ErrConnectionClosed, replyLost},
		{fmt.Errorf("x: %w", zk.ErrConnectionClosed), replyLost},
		{errors.New("unknown error: -4"), replyLost},
		{errors.New("unknown error: -7"), replyLost},
		{io.EOF, replyLost},
		{io.ErrUnexpectedEOF, replyLost},
		{net.ErrClosed, replyLost},
		{os.ErrDeadlineExceeded, replyLost},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, replyLost},
		{syscall.ECONNRESET, replyLost},
	} {
		if got := classify(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// zk.Conn makes text of codes that it does not know. They are read back from the text.
func TestCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{zk.ErrNoNode, 0},
		{zk.ErrUnknown, 0},
		{errors.New("unknown error: -6"), -6},
		{fmt.Errorf("create /a: %w", errors.New("unknown error: -127")), -127},
		{errors.New("unknown error: "), 0},
		{errors.New("unknown error: x"), 0},
	} {
		if got := code(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
	if !isUnimplemented(errors.New("unknown error: -6")) || isUnimplemented(zk.ErrNoNode) || isUnimplemented(nil) {
		t.Error("isUnimplemented")
	}
}

// If the session has ended, its error replaces that of the connection.
func TestVerdict(t *testing.T) {
	s := bareSession(t, newFakeConfig(t))
	if err := s.verdict(io.EOF); !errors.Is(err, zk.ErrConnectionClosed) || !errors.Is(err, io.EOF) {
		t.Errorf("a raw error: %v", err)
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
