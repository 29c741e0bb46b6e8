package session_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// useless is a server that greets every client with the same session, and takes an identity if
// one is presented. It hangs up on the first request, or if none comes soon.
func useless(t *testing.T, identity bool) string {
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
				_ = c.SetDeadline(time.Now().Add(testserver.Patience))
				if _, err := codec.ReadFrame(c, 100); err != nil {
					return
				}
				_, _ = c.Write(greet(0x77))
				if identity {
					if _, err := io.ReadFull(c, make([]byte, authFrameSize)); err != nil {
						return
					}
					_, _ = c.Write(words(16, -4, 0, 1, 0))
				}
				_ = c.SetDeadline(time.Now().Add(100 * time.Millisecond))
				_, _ = c.Read(make([]byte, 1))
			})
		}
	})
	t.Cleanup(func() { l.Close(); conns.Wait() })
	return l.Addr().String()
}

// A server that greets and then hangs up, again and again, is not dialled again at once. The same
// goes for a server that hangs up because it insists on an identity.
func TestGreetingIsOfNoUse(t *testing.T) {
	longtest.Only(t)
	for name, opts := range map[string][]session.Option{
		"anonymous": nil,
		"identity":  {session.WithAuth("digest", []byte("us:secret"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()                                   // Close waits for its whole limit
			const enough, most = 30, 20 * time.Millisecond // each wait is half of that on average
			var dials atomic.Int64
			dialled, began := make(chan struct{}), time.Now()
			testserver.Connect(t, useless(t, len(opts) > 0), append(opts,
				session.WithTimeout(time.Minute),
				session.WithLogger(slog.New(slog.DiscardHandler)),
				session.WithBackoff(most, most),
				session.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
					if dials.Add(1) == enough {
						close(dialled)
					}
					return new(net.Dialer).DialContext(ctx, network, addr)
				}))...)
			within(t, dialled, "the dials")
			if took := time.Since(began); took < enough*most/5 {
				t.Errorf("%d dials within %v", enough, took)
			}
		})
	}
}
