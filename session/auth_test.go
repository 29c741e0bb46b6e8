package session_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// An identity is presented on every connection and in every session. The nodes made with it are
// closed to other clients, and a refusal is reported at once.
func TestAuthAndACL(t *testing.T) {
	p, m, s := behindProxy(t, 20*time.Second,
		session.WithAuth("digest", []byte("us:secret")),
		session.WithACL(zk.DigestACL(zk.PermAll, "us", "secret")...))
	d, ctx := dir(t, s), patient(t)
	_, err := s.Create(ctx, d+"/n", []byte("x"), session.Persistent)
	must(t, err)

	stranger := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()))
	_, _, err = stranger.Get(ctx, d+"/n")
	wantErr(t, "a stranger's get", err, zk.ErrNoAuth)
	_, _, err = stranger.Children(ctx, d)
	wantErr(t, "a stranger's listing", err, zk.ErrNoAuth)
	_, err = makeNode(ctx, stranger, d+"/m", nil)
	wantErr(t, "a stranger's create", err, zk.ErrNoAuth)
	removal := (*session.Session)(stranger).Remove(t.Context(), d+"/n")
	within(t, removal.Done(), "the end of a removal that is refused")
	wantErr(t, "a stranger's removal", removal.Err(), zk.ErrNoAuth)

	p.Disconnect()
	_, _, err = s.Get(ctx, d+"/n")
	must(t, err)
	must(t, p.Expire(ctx, s.ID()))
	within(t, s.Done(), "the expiry")
	_, _, err = testserver.Session(t, m).Get(ctx, d+"/n")
	must(t, err)
}

func TestAuthRefused(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), testserver.Bound())
	defer cancel()
	m, err := session.Connect(ctx, testserver.Server(t).ConnectString(),
		session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
		session.WithAuth("no-such-scheme", []byte("x")))
	wantErr(t, "connect", err, zk.ErrAuthFailed)
	if m != nil {
		t.Error("a manager beside the error")
	}
}

// A path is closed to all but one identity, and connections are cut all the time, often in the
// middle of a handshake. No request is sent before the identity.
func TestAuthBeforeAllElse(t *testing.T) {
	p, m, s := behindProxy(t, time.Minute,
		session.WithBackoff(time.Millisecond, time.Millisecond),
		session.WithAuth("digest", []byte("us:secret")),
		session.WithACL(zk.DigestACL(zk.PermAll, "us", "secret")...))
	d, ctx := dir(t, s), patient(t)
	const cuts = 60
	over := make(chan struct{})
	go func() {
		defer close(over)
		for i := range cuts {
			// Not at a certain time, but at the next of these: each is part of a handshake or
			// comes right after one.
			op := []zktest.Op{zktest.OpConnect, zktest.OpAuth, zktest.OpGetData, zktest.OpCreate}[i%4]
			cut := p.CutBefore
			if i%8 > 3 {
				cut = p.CutAfterCommit
			}
			fault := cut(zktest.Any(op))
			p.Disconnect()
			select {
			case <-fault.Hit():
			case <-ctx.Done():
				return
			}
		}
	}()
	asked := 0
	for done := false; !done; asked++ {
		select {
		case <-over:
			done = true // and once more
		default:
		}
		if _, err := s.Create(ctx, d+"/n", nil, session.Persistent); err != nil &&
			!errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, session.ErrUncertain) {
			t.Fatal(err)
		}
		if _, _, err := s.Get(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.Count(zktest.Any(zktest.OpAuth)); n < cuts/2 {
		t.Errorf("%d identities presented", n)
	}
	if now := testserver.Session(t, m); now.ID() != s.ID() {
		t.Errorf("another session")
	}
	t.Logf("%d rounds, %d handshakes", asked, p.Count(zktest.Any(zktest.OpConnect)))
}

// authFrameSize is the size of the frame of the identity ("digest", "us:secret"): six numbers and
// the texts.
const authFrameSize = 6*4 + len("digest") + len("us:secret")

// turncoat is a server that accepts the identity on the first connection and refuses it on later
// ones. It closes the first connection when told to.
func turncoat(t *testing.T, hangUp <-chan struct{}) string {
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
				_, _ = c.Write(greet(0x77))
				if _, err := io.ReadFull(c, make([]byte, authFrameSize)); err != nil {
					return
				}
				code := int32(-115)
				if n == 0 {
					code = 0
				}
				_, _ = c.Write(words(16, -4, 0, 1, code))
				if n == 0 {
					select {
					case <-hangUp:
					case <-t.Context().Done():
					}
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); conns.Wait() })
	return l.Addr().String()
}

// A server with a new configuration refuses the identity of a session that exists already. The
// session is lost, its error says why, and callers that wait for the next session get the reason
// too.
func TestAuthRefusedLater(t *testing.T) {
	longtest.Only(t)
	t.Parallel() // Close waits for its whole limit
	hangUp := make(chan struct{})
	m := testserver.Connect(t, turncoat(t, hangUp), session.WithAuth("digest", []byte("us:secret")))
	s := testserver.Session(t, m)
	close(hangUp)
	within(t, s.Done(), "the loss")
	wantErr(t, "the session", s.Err(), session.ErrLost)
	wantErr(t, "the session", s.Err(), zk.ErrAuthFailed)
	_, err := m.Session(patient(t))
	wantErr(t, "the next session", err, zk.ErrAuthFailed)
	if errors.Is(err, session.ErrLost) {
		t.Errorf("%v: there is none to be lost", err)
	}
}
