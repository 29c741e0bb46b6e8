package wire

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// brokenConn is a connection of a user's dialer that breaks the contract of io.Reader, or that of io.Writer.
type brokenConn struct {
	net.Conn
	reads, writes bool
}

func (c *brokenConn) Read(b []byte) (int, error) {
	if c.reads {
		return 0, nil
	}
	return c.Conn.Read(b)
}

func (c *brokenConn) Write(b []byte) (int, error) {
	if c.writes {
		b = b[:len(b)/2]
	}
	return c.Conn.Write(b)
}

// A Read that returns nothing again and again does not keep the processor busy, and a short Write does not leave half of
// a frame on the network. Both end the connection.
func TestBrokenConn(t *testing.T) {
	for _, c := range []struct {
		name          string
		reads, writes bool
		want          error
	}{
		{"reads nothing", true, false, io.ErrNoProgress},
		{"writes half", false, true, io.ErrShortWrite},
	} {
		t.Run(c.name, func(t *testing.T) {
			near, far := net.Pipe()
			defer far.Close()
			go func() { _, _ = io.Copy(io.Discard, far) }()
			cfg := config(&fakeEvents{})
			cfg.HandshakeLimit = 100 * time.Millisecond
			w := New(&brokenConn{near, c.reads, c.writes}, cfg)
			over := make(chan error, 1)
			go func() { over <- w.Serve(codec.Hello{TimeoutMillis: 6000}) }()
			select {
			case err := <-over:
				if !errors.Is(err, c.want) {
					t.Errorf("ended with %v, want %v", err, c.want)
				}
			case <-time.After(10 * time.Second):
				t.Error("Serve does not return")
			}
		})
	}
}
