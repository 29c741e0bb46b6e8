package session_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// A server greets, hangs before it answers the identity, and keeps the connection open, as a stopped process does. Another
// server takes over.
func TestAuthNeverAnswered(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	var conns sync.WaitGroup
	hang := func(c net.Conn) {
		if _, err := codec.ReadFrame(c, 100); err != nil {
			return
		}
		_, _ = c.Write(words(36, 0, 2000, 0, 0x77, 16, 1, 2, 3, 4))
		_, _ = io.Copy(io.Discard, c)
	}
	pass := func(c net.Conn) {
		up, err := net.Dial("tcp4", testserver.Server(t).Addr(0))
		if err != nil {
			return
		}
		defer up.Close()
		conns.Go(func() { _, _ = io.Copy(c, up); c.Close() })
		_, _ = io.Copy(up, c)
	}
	conns.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				if n == 0 {
					hang(c)
				} else {
					pass(c)
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); conns.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), testserver.Bound())
	defer cancel()
	began := time.Now()
	m, err := session.Connect(ctx, l.Addr().String(), session.WithAuth("digest", []byte("us:secret")),
		session.WithTimeout(2*time.Second))
	if err != nil {
		t.Fatalf("after %v: %v", time.Since(began), err)
	}
	t.Logf("connected after %v", time.Since(began))
	must(t, m.Close())
}
