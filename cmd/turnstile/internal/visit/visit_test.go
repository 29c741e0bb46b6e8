package visit_test

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/visit"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
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
	greeting, err := visit.ReadFrame(c, 1000)
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
	identities := []visit.Identity{{Scheme: "digest", Credential: []byte("owner:secret")}}
	for _, v := range []visit.Visit{{Hello: h, Identities: identities}, {Hello: h}} {
		if out := v.Run(dial(t, srv)); !out.Greeted || !out.Gone || out.Refused {
			t.Errorf("%+v", out)
		}
		if isLive(t, srv, h) {
			t.Error("the session is live")
		}
	}
}

// A visit with a wrong password leaves the session alone.
func TestVisitNeedsPassword(t *testing.T) {
	srv := zktest.Start(t)
	h := open(t, srv)
	wrong := h
	wrong.Password = bytes.Repeat([]byte{1}, visit.PasswordLength)
	visit.Visit{Hello: wrong}.Run(dial(t, srv))
	if !isLive(t, srv, h) {
		t.Error("the session is closed")
	}
}

// A visit for a new session tells the timeout that the server grants, and leaves no session.
func TestVisitLearnsTimeout(t *testing.T) {
	srv := zktest.Start(t, zktest.TickTime(500*time.Millisecond))
	out := visit.Visit{Hello: visit.Hello{Timeout: time.Millisecond}}.Run(dial(t, srv))
	if !out.Gone || out.Timeout != time.Second {
		t.Errorf("%+v", out)
	}
}

// A visit proves who the client is, and tells if a server refuses that.
func TestVisitIdentifies(t *testing.T) {
	srv := zktest.Start(t, zktest.SASLUser("shop", "secret"))
	h := open(t, srv)
	out := visit.Visit{Hello: h, Identities: []visit.Identity{{Scheme: "nobody knows it"}}}.Run(dial(t, srv))
	if !out.Refused {
		t.Errorf("an unknown scheme: %+v", out)
	}
	h = open(t, srv)
	out = visit.Visit{Hello: h, SASL: session.DigestMD5("shop", "wrong")}.Run(dial(t, srv))
	if !out.Refused || out.Gone {
		t.Errorf("a wrong password: %+v", out)
	}
	out = visit.Visit{Hello: h, SASL: session.DigestMD5("shop", "secret")}.Run(dial(t, srv))
	if out.Refused || !out.Gone || isLive(t, srv, h) {
		t.Errorf("SASL: %+v", out)
	}
}
