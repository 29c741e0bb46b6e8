package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// scripted is a server that answers the nth handshake (from 0) with greetings[n], and all later
// ones with the last. It hangs up on the next frame, but not before hangUp is closed.
func scripted(t *testing.T, hangUp <-chan struct{}, greetings ...[]byte) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	var conns sync.WaitGroup
	conns.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(testserver.Patience))
				if _, err := codec.ReadFrame(c, 100); err != nil {
					return
				}
				_, _ = c.Write(greetings[min(n, len(greetings)-1)])
				select {
				case <-hangUp:
				case <-t.Context().Done():
				}
				_, _ = c.Read(make([]byte, 1))
			})
		}
	})
	t.Cleanup(func() { l.Close(); conns.Wait() })
	return l.Addr().String()
}

func greet(id int32) []byte { return words(36, 0, 60_000, 0, id, 16, 1, 2, 3, 4) }

// If a server answers with another session than the client asked for, the session is lost, and
// the error says why, whatever the clock does.
func TestAnotherSessionAnswers(t *testing.T) {
	longtest.Only(t)
	t.Parallel() // Close waits for its whole limit
	lost := make(chan session.Change, 10)
	known := make(chan struct{}) // a session that is lost before the manager has it is not told of
	m := testserver.Connect(t, scripted(t, known, greet(0x77), greet(0x88)),
		session.WithTrace(session.Trace{State: func(c session.Change) {
			if c.To == session.Lost {
				lost <- c
			}
		}}))
	close(known)
	c := within(t, lost, "the loss")
	wantErr(t, "change", c.Err, session.ErrLost)
	if c.Session != 0x77 || !strings.Contains(c.Err.Error(), "another session") {
		t.Errorf("lost %x: %v", c.Session, c.Err)
	}
	if s := testserver.Session(t, m); s.ID() != 0x88 {
		t.Errorf("the next session is %x", s.ID())
	}
}

// authFrameSize is the size of the frame of the identity ("digest", "us:secret"): six numbers and the texts.
const authFrameSize = 6*4 + len("digest") + len("us:secret")

// fickle is a server with one session that accepts the identity on the first connection only. It
// closes that connection when told to. It closes the session, once, for a client that asks for it
// without presenting the identity again.
func fickle(t *testing.T, hangUp <-chan struct{}) (addr string, closed <-chan struct{}) {
	t.Helper()
	asked := make(chan struct{}, 1)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	var conns sync.WaitGroup
	conns.Go(func() {
		for first := true; ; first = false {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(testserver.Patience))
				if _, err := codec.ReadFrame(c, codec.MaxFrame); err != nil {
					return
				}
				_, _ = c.Write(greet(0x77))
				head := make([]byte, 12)
				if _, err := io.ReadFull(c, head); err != nil {
					return
				}
				xid, op := int32(binary.BigEndian.Uint32(head[4:])), int32(binary.BigEndian.Uint32(head[8:]))
				switch {
				case op == -11:
					select {
					case asked <- struct{}{}:
					default:
					}
					_, _ = c.Write(words(16, xid, 0, 1, 0))
				case !first:
					_, _ = io.ReadFull(c, make([]byte, authFrameSize-len(head)))
					_, _ = c.Write(words(16, xid, 0, 1, -115))
				default:
					_, _ = io.ReadFull(c, make([]byte, authFrameSize-len(head)))
					_, _ = c.Write(words(16, xid, 0, 1, 0))
					select {
					case <-hangUp:
					case <-t.Context().Done():
					}
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); conns.Wait() })
	return l.Addr().String(), asked
}

// A server with a new configuration refuses the identity of a session. The session is lost, its error says why, and callers that
// wait for the next session get the reason too. The server does not accept a closeSession behind the identity, so the session
// is closed without it.
func TestLostSessionIsClosedWithoutRefusedIdentity(t *testing.T) {
	for name, opts := range map[string][]session.Option{
		"refused to the session":  nil,
		"refused when it is over": {session.WithLossOnSuspend()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hangUp := make(chan struct{})
			addr, closed := fickle(t, hangUp)
			m := testserver.Connect(t, addr, append(opts, session.WithTimeout(time.Minute), session.WithAuth("digest", []byte("us:secret")))...)
			s := testserver.Session(t, m)
			close(hangUp)
			within(t, s.Done(), "the loss")
			wantErr(t, "the session", s.Err(), session.ErrLost)
			if opts == nil {
				wantErr(t, "the session", s.Err(), zk.ErrAuthFailed)
			}
			_, err := m.Session(patient(t))
			wantErr(t, "the next session", err, zk.ErrAuthFailed)
			if errors.Is(err, session.ErrLost) {
				t.Errorf("%v: there is none to be lost", err)
			}
			within(t, closed, "a closeSession")
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
		_, s := virtually(t, "h:1", func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go checksForAll(far)
			return near, nil
		}, session.WithTickTime(time.Second))
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

// checksForAll is a server that answers each multi with one result of kind check.
func checksForAll(c net.Conn) {
	defer c.Close()
	for i := int64(0); ; i++ {
		f, err := codec.ReadFrame(c, codec.MaxFrame)
		if err != nil {
			return
		}
		answer := greet(0x77)
		if i > 0 {
			d := codec.Decode(f)
			xid, op := d.Int32(), d.Int32()
			e := codec.NewFrame()
			e.Int32(xid)
			e.Int64(i)
			e.Int32(codec.CodeOK)
			switch op {
			case codec.OpMulti:
				e.MultiHeader(codec.OpCheck, false, 0)
				e.MultiHeader(codec.OpError, true, -1)
			case codec.OpSync:
				e.String("/")
			}
			answer = e.Frame()
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}
