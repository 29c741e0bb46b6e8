package session

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// gated is a connection from which nothing can be read while its gate is closed.
type gated struct {
	net.Conn
	gate *atomic.Pointer[chan struct{}]
}

func (c gated) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if gate := c.gate.Load(); gate != nil {
		<-*gate
	}
	return n, err
}

// TestLateLook has a session whose timer does not fire in time, as after a pause of the process. The first look is right
// all the same, and so is one behind answers that were on their way.
func TestLateLook(t *testing.T) {
	for name, answers := range map[string]bool{"first": false, "behind late answers": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				var gate atomic.Pointer[chan struct{}]
				m, err := Connect(t.Context(), "h:1", WithTimeout(10*time.Second), WithLogger(slog.New(slog.DiscardHandler)),
					WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
						c, err := srv.Dialer()(ctx, network, addr)
						return gated{c, &gate}, err
					}))
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				s, err := m.Session(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				closed := make(chan struct{})
				gate.Store(&closed)
				s.mu.Lock()
				s.timer.Stop()
				s.mu.Unlock()
				time.Sleep(s.remaining() + time.Millisecond)
				if answers {
					gate.Store(nil)
					close(closed)
					synctest.Wait()
				} else {
					defer close(closed)
				}
				if !errors.Is(s.Err(), ErrLost) || s.Remaining() > 0 {
					t.Errorf("%v, and %v remain", s.Err(), s.Remaining())
				}
			})
		})
	}
}
