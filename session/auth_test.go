package session_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// An identity is presented on every connection and in every session, and what it makes is
// closed to others, who are told so at once.
func TestAuthAndACL(t *testing.T) {
	p, m, s := behindProxy(t, 5*time.Second,
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
	_, err = stranger.Create(ctx, d+"/m", nil, session.Ephemeral)
	wantErr(t, "a stranger's create", err, zk.ErrNoAuth)
	removal := stranger.Remove(t.Context(), d+"/n")
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
	ctx, cancel := context.WithTimeout(context.Background(), testserver.Patience)
	defer cancel()
	m, err := session.Connect(ctx, testserver.Server(t).ConnectString(),
		session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
		session.WithAuth("no-such-scheme", []byte("x")))
	wantErr(t, "connect", err, zk.ErrAuthFailed)
	if m != nil {
		t.Error("a manager beside the error")
	}
}
