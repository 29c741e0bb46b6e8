package session_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// hung is a function of the program that hangs from some time on, whatever its context says.
type hung struct {
	from    chan struct{} // closed when it hangs
	release chan struct{}
}

func (h *hung) call() {
	select {
	case <-h.from:
		<-h.release
	default:
	}
}

func (h *hung) Name() string { return "HUNG" }

func (h *hung) Start(context.Context, string) (session.SASLExchange, []byte, error) {
	h.call()
	return session.DigestMD5("shop", "secret").Start(context.Background(), "")
}

// Close is bounded while a resolver or a mechanism does not return, and so is an outage with a resolver like that.
func TestCloseWhileFunctionsHang(t *testing.T) {
	for what, opt := range map[string]func(*hung) session.Option{
		"resolver": func(h *hung) session.Option {
			return session.WithResolver(func(context.Context) ([]string, error) { h.call(); return []string{"any"}, nil })
		},
		"mechanism": func(h *hung) session.Option { return session.WithSASL(h) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := zktest.Start(t, zktest.SASLUser("shop", "secret"))
				h := &hung{make(chan struct{}), make(chan struct{})}
				defer close(h.release)
				m, err := session.Connect(t.Context(), "any:2181", session.WithDialer(server.Dialer()),
					session.WithLogger(slog.New(slog.DiscardHandler)), opt(h))
				must(t, err)
				s, err := m.Session(t.Context())
				must(t, err)
				close(h.from)
				server.Disconnect()
				if what == "resolver" {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					defer cancel()
					must(t, s.Sync(ctx, "/"))
				}
				time.Sleep(time.Second)
				began := time.Now()
				err = m.Close()
				if d := time.Since(began); d > 6*time.Second {
					t.Errorf("Close took %v", d)
				}
				t.Log(time.Since(began), err)
			})
		})
	}
}
