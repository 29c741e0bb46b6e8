package session_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// A first handshake that is answered with no session is tried again at once.
func TestNoSessionAtFirst(t *testing.T) {
	longtest.Only(t)
	t.Parallel() // Close waits for its whole limit
	soon := make(chan struct{})
	close(soon)
	m := testserver.Connect(t, scripted(t, soon, words(36, 0, 0, 0, 0, 16, 0, 0, 0, 0), greet(0x77)))
	if s := testserver.Session(t, m); s.ID() != 0x77 {
		t.Errorf("session %x", s.ID())
	}
}

// If Connect fails, its error says why there was no session.
func TestConnectFails(t *testing.T) {
	why := errors.New("the cable is unplugged")
	ctx, cancel := context.WithCancel(patient(t))
	defer cancel()
	var dials atomic.Int64
	m, err := session.Connect(ctx, "h:1", session.WithLogger(slog.New(slog.DiscardHandler)),
		session.WithDialer(func(context.Context, string, string) (net.Conn, error) {
			if dials.Add(1) == 2 { // the first has failed
				cancel()
			}
			return nil, why
		}))
	if m != nil {
		t.Error("a manager beside the error")
	}
	wantErr(t, "connect", err, context.Canceled)
	wantErr(t, "connect", err, why)
}

// A server that is down and one without an address do not keep a client from the third server.
func TestConnectOneOfThree(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	servers := l.Addr().String() + ",no-such-host.invalid:1," + testserver.Server(t).ConnectString()
	s := testserver.Session(t, testserver.Connect(t, servers))
	must(t, s.Sync(patient(t), "/"))
}
