package visit_test

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/visit"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// dial connects to a server.
func dial(t *testing.T, srv *zktest.Server) net.Conn {
	t.Helper()
	c, err := srv.Dialer()(t.Context(), "tcp", srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// open opens a session, and returns a handshake for it.
func open(t *testing.T, srv *zktest.Server) visit.Hello {
	t.Helper()
	c := dial(t, srv)
	return greet(t, c, visit.Hello{Timeout: 10 * time.Second})
}

// greet makes a handshake, and returns that for the session of the answer, which is 0 if the session is over.
func greet(t *testing.T, c net.Conn, h visit.Hello) visit.Hello {
	t.Helper()
	if _, err := c.Write(h.Frame()); err != nil {
		t.Fatal(err)
	}
	greeting, err := visit.ReadFrame(c)
	if err != nil || len(greeting) < visit.GreetingLength {
		t.Fatal(greeting, err)
	}
	h.Session = int64(binary.BigEndian.Uint64(greeting[8:]))
	h.Password = greeting[20:visit.GreetingLength]
	return h
}

func isLive(t *testing.T, srv *zktest.Server, h visit.Hello) bool {
	t.Helper()
	return greet(t, dial(t, srv), h).Session != 0
}

// A visit closes the session that it asks for, and a second one finds that it is gone.
func TestVisitCloses(t *testing.T) {
	srv := zktest.Start(t)
	h := open(t, srv)
	for _, identities := range [][]visit.Identity{{{Scheme: "digest", Credential: []byte("owner:secret")}}, nil} {
		if out, err := visit.Close(dial(t, srv), h, identities...); err != nil || !out.Gone {
			t.Errorf("%+v, %v", out, err)
		}
		if isLive(t, srv, h) {
			t.Error("the session is live")
		}
	}
}

// A visit with a wrong password leaves the session alone, and so does one with an identity that the server refuses.
func TestVisitRefused(t *testing.T) {
	srv := zktest.Start(t)
	h := open(t, srv)
	wrong := h
	wrong.Password = bytes.Repeat([]byte{1}, visit.PasswordLength)
	_, _ = visit.Close(dial(t, srv), wrong)
	out, _ := visit.Close(dial(t, srv), h, visit.Identity{Scheme: "nobody knows it"})
	if out.Gone || !isLive(t, srv, h) {
		t.Errorf("%+v: the session is closed", out)
	}
}

// A visit for a new session tells the timeout that the server grants, and leaves no session.
func TestVisitLearnsTimeout(t *testing.T) {
	srv := zktest.Start(t, zktest.TickTime(500*time.Millisecond))
	out, err := visit.Close(dial(t, srv), visit.Hello{Timeout: time.Millisecond})
	if err != nil || !out.Gone || out.Timeout != time.Second {
		t.Errorf("%+v, %v", out, err)
	}
}
