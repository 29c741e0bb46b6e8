package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/session"
)

func asError[T error](err error, target *T) bool { return errors.As(err, target) }

// hostile is a server that answers every handshake with the same bytes, and then reads on.
func hostile(t *testing.T, answer []byte, hangUp bool) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				if _, err := codec.ReadFrame(c, 100); err != nil {
					return
				}
				_, _ = c.Write(answer)
				if !hangUp {
					_, _ = io.Copy(io.Discard, c)
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); conns.Wait() })
	return l.Addr().String()
}

// words encodes 32-bit numbers.
func words(ns ...int32) []byte {
	var b []byte
	for _, n := range ns {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// Whatever a server sends instead of a greeting, there is no panic, no session, and no memory for
// the bytes that it announces. Connect ends with its context.
func TestHostileGreetings(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string][]byte{
		"nothing":            nil,
		"length of zero":     words(0),
		"negative length":    words(-1),
		"length of 2 GB":     words(0x7fffffff, 1, 2, 3),
		"too short":          words(16, 0, 1000, 0, 1),
		"huge password":      words(36, 0, 1000, 0, 1, 1<<30, 0, 0, 0, 0),
		"negative password":  words(36, 0, 1000, 0, 1, -1, 0, 0, 0, 0),
		"negative timeout":   words(36, 0, -5, 0, 1, 16, 0, 0, 0, 0),
		"text":               []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"half of a greeting": words(36, 0, 1000),
	} {
		for _, hangUp := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				addr := hostile(t, answer, hangUp)
				ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
				defer cancel()
				m, err := session.Connect(ctx, addr, session.WithTimeout(time.Second),
					session.WithLogger(slog.New(slog.DiscardHandler)))
				if m != nil || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v, %v", m, err)
				}
			})
		}
	}
}

// If a server greets well and then sends nonsense, its connection is closed, and the session ends
// by the clock.
func TestHostileReplies(t *testing.T) {
	longtest.Only(t)
	greeting := words(36, 0, 1000, 0, 0x77, 16, 1, 2, 3, 4)
	for name, after := range map[string][]byte{
		"silence":              nil,
		"bad length":           words(-7),
		"too short a reply":    words(8, 1, 1),
		"a reply nobody asked": words(16, 999, 0, 1, 0),
		"an event of nothing":  words(16, -1, 0, 0, 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := hostile(t, append(append([]byte{}, greeting...), after...), false)
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			m, err := session.Connect(ctx, addr, session.WithTimeout(time.Second),
				session.WithLogger(slog.New(slog.DiscardHandler)))
			if err != nil {
				return // the greeting was refused
			}
			defer m.Close()
			s, err := m.Session(ctx)
			if err == nil {
				// The same greeting on each reconnect keeps the session alive, but no
				// request gets an answer.
				short, cancel := context.WithTimeout(ctx, 1500*time.Millisecond)
				defer cancel()
				_, err = s.Exists(short, "/x")
			}
			if err == nil {
				t.Error("a request was answered")
			}
		})
	}
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
