package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/session"
)

func greet(id int32) []byte { return words(36, 0, 60_000, 0, id, 16, 1, 2, 3, 4) }

// answering is a network of servers, which answer the nth frame of a connection, both counted from 0, and then go on or hang up.
func answering(answer func(conn, n int, frame []byte) (reply []byte, goOn bool)) dial {
	var conns atomic.Int64
	return func(context.Context, string, string) (net.Conn, error) {
		conn, frames := int(conns.Add(1))-1, make(chan []byte, 1000)
		near, far := net.Pipe()
		go func() {
			defer close(frames)
			for {
				f, err := codec.ReadFrame(far, codec.MaxFrame)
				if err != nil {
					return
				}
				frames <- f
			}
		}()
		go func() {
			defer far.Close()
			n := 0
			for f := range frames {
				reply, goOn := answer(conn, n, f)
				if len(reply) > 0 {
					_, _ = far.Write(reply)
				}
				if n++; !goOn {
					return
				}
			}
		}()
		return near, nil
	}
}

// result is an answer without a body to a request.
func result(frame []byte, code int32) []byte { return words(16, codec.Xid(frame), 0, 1, code) }

// If a server answers with another session than the client asked for, the session is lost, and
// the error says why, whatever the clock does.
func TestAnotherSessionAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := make(chan session.Change, 10)
		known := make(chan struct{}) // a session that is lost before the manager has it is not told of
		m, _ := virtually(t, "h:1", answering(func(conn, n int, _ []byte) ([]byte, bool) {
			if n == 0 {
				return greet(int32(0x77 + 0x11*min(conn, 1))), true
			}
			<-known
			return nil, false
		}), session.WithTickTime(time.Second), session.WithTrace(session.Trace{State: func(c session.Change) {
			if c.To == session.Lost {
				lost <- c
			}
		}}))
		close(known)
		c := expect.Receive(t, "the loss", lost)
		wantErr(t, "change", c.Err, session.ErrLost)
		if c.Session != 0x77 || !strings.Contains(c.Err.Error(), "another session") {
			t.Errorf("lost %x: %v", c.Session, c.Err)
		}
		s, err := m.Session(t.Context())
		if must(t, err); s.ID() != 0x88 {
			t.Errorf("the next session is %x", s.ID())
		}
	})
}

// A server with a new configuration refuses the identity of a session. The session is lost, its error says why, and callers that
// wait for the next session get the reason too. The server does not accept a closeSession behind the identity, so the session
// is closed without it.
func TestLostSessionIsClosedWithoutRefusedIdentity(t *testing.T) {
	for name, opts := range map[string][]session.Option{
		"refused to the session":  nil,
		"refused when it is over": {session.WithLossOnSuspend()},
	} {
		synctest.Test(t, func(t *testing.T) {
			hangUp, closed := make(chan struct{}), make(chan struct{})
			asked := sync.OnceFunc(func() { close(closed) })
			m, s := virtually(t, "h:1", answering(func(conn, n int, f []byte) ([]byte, bool) {
				switch {
				case n == 0:
					return greet(0x77), true
				case codec.Op(f) == codec.OpClose:
					asked()
					return result(f, 0), true
				case codec.Op(f) == codec.OpAuth && conn == 0:
					return result(f, 0), true
				case codec.Op(f) == codec.OpAuth:
					return result(f, codec.CodeAuthFailed), false
				}
				<-hangUp
				return nil, false
			}), append(opts, session.WithTimeout(time.Minute), session.WithTickTime(time.Second), session.WithAuth("digest", []byte("us:secret")))...)
			close(hangUp)
			<-s.Done()
			wantErr(t, name, s.Err(), session.ErrLost)
			if opts == nil {
				wantErr(t, name, s.Err(), zk.ErrAuthFailed)
			}
			_, err := m.Session(t.Context())
			wantErr(t, "the next session", err, zk.ErrAuthFailed)
			if errors.Is(err, session.ErrLost) {
				t.Errorf("%v: there is none to be lost", err)
			}
			<-closed
		})
	}
}

// words encodes 32-bit numbers.
func words(ns ...int32) []byte {
	var b []byte
	for _, n := range ns {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// A server whose multi returns results of other kinds than the operations breaks the protocol: nothing of
// the answer is believed, and the connection is closed.
func TestMultiResultsOfOtherKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := virtually(t, "h:1", answering(func(_, n int, f []byte) ([]byte, bool) {
			if n == 0 {
				return greet(0x77), true
			}
			e := codec.NewFrame()
			e.Int32(codec.Xid(f))
			e.Int64(int64(n))
			e.Int32(codec.CodeOK)
			switch codec.Op(f) {
			case codec.OpMulti:
				e.MultiHeader(codec.OpCheck, false, 0)
				e.MultiHeader(codec.OpError, true, -1)
			case codec.OpSync:
				e.String("/")
			}
			return e.Frame(), true
		}), session.WithTickTime(time.Second))
		for name, op := range map[string]any{
			"set":    &zk.SetDataRequest{Path: "/a", Version: -1},
			"delete": &zk.DeleteRequest{Path: "/a", Version: -1},
			"create": &zk.CreateRequest{Path: "/a"},
		} {
			results, err := s.Multi(t.Context(), op)
			if results != nil {
				t.Errorf("%s: results %v", name, results)
			}
			wantErr(t, name, err, zk.ErrConnectionClosed)
			synctest.Wait() // the connection has been closed
		}
		results, err := s.Multi(t.Context(), &zk.CheckVersionRequest{Path: "/a", Version: -1})
		must(t, err)
		if len(results) != 1 {
			t.Errorf("check: %v", results)
		}
	})
}
