package session_test

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// program has the functions that a program supplies. Each calls do.
type program struct{ do func() }

func (p *program) Name() string { return "CALLS" }

func (p *program) Start(context.Context, string) (session.SASLExchange, []byte, error) {
	p.do()
	return session.DigestMD5("shop", "secret").Start(context.Background(), "")
}

func (p *program) Enabled(context.Context, slog.Level) bool  { return true }
func (p *program) Handle(context.Context, slog.Record) error { p.do(); return nil }
func (p *program) WithAttrs([]slog.Attr) slog.Handler        { return p }
func (p *program) WithGroup(string) slog.Handler             { return p }

// functions are the ways in which a program supplies a function that a manager calls when a connection or a session ends.
var functions = map[string]func(*program, *zktest.Server) session.Option{
	"resolver": func(p *program, _ *zktest.Server) session.Option {
		return session.WithResolver(func(context.Context) ([]string, error) { p.do(); return []string{"any"}, nil })
	},
	"dialer": func(p *program, srv *zktest.Server) session.Option {
		return session.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			p.do()
			return srv.Dialer()(ctx, network, addr)
		})
	},
	"mechanism": func(p *program, _ *zktest.Server) session.Option { return session.WithSASL(p) },
	"log":       func(p *program, _ *zktest.Server) session.Option { return session.WithLogger(slog.New(p)) },
	"state hook": func(p *program, _ *zktest.Server) session.Option {
		return session.WithTrace(session.Trace{State: func(session.Change) { p.do() }})
	},
	"subscriber": nil, // see connectWith
	"request hook": func(p *program, _ *zktest.Server) session.Option {
		return session.WithTrace(session.Trace{Request: func(ctx context.Context, _ session.RequestInfo) (context.Context, func(error)) {
			p.do()
			return ctx, nil
		}})
	},
	"outcome hook": func(p *program, _ *zktest.Server) session.Option {
		return session.WithTrace(session.Trace{Request: func(ctx context.Context, _ session.RequestInfo) (context.Context, func(error)) {
			return ctx, func(error) { p.do() }
		}})
	},
}

// connectWith connects with one of the functions.
func connectWith(t *testing.T, what string, p *program) (*zktest.Server, *session.Manager, *session.Session) {
	t.Helper()
	srv := zktest.Start(t, zktest.SASLUser("shop", "secret"))
	opts := []session.Option{quiet, session.WithDialer(srv.Dialer())}
	if f := functions[what]; f != nil {
		opts = append(opts, f(p, srv))
	}
	m, err := session.Connect(t.Context(), "any:2181", opts...)
	must(t, err)
	if what == "subscriber" {
		m.Subscribe(func(session.Change) { p.do() })
	}
	s, err := m.Session(t.Context())
	must(t, err)
	return srv, m, s
}

// Close is bounded while a function of the program hangs, whatever its context says, and no session counts as certain for
// longer because of that.
func TestCloseWhileFunctionsHang(t *testing.T) {
	for what := range functions {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hangs, release := make(chan struct{}), make(chan struct{})
				defer close(release)
				srv, m, s := connectWith(t, what, &program{func() {
					select {
					case <-hangs:
						<-release
					default:
					}
				}})
				node := enter(t, s, "/d/own")
				go func() { _ = s.Sync(t.Context(), "/") }()
				close(hangs)
				srv.Disconnect()
				go node.Remove(t.Context()) // its hook may hang it
				time.Sleep(time.Second)
				srv.Refuse(true)
				srv.Disconnect()
				time.Sleep(s.Remaining())
				if s.Err() == nil || s.Remaining() > 0 {
					t.Errorf("certain for %v longer than its time", s.Remaining())
				}
				srv.Refuse(false)
				wantClose(t, m)
			})
		})
	}
}

// Close returns when a function of the program calls it. The manager is closed then.
func TestCloseWithinFunctions(t *testing.T) {
	for what := range functions {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var manager atomic.Pointer[session.Manager] // nil before Close is to be called, and from then on
				closed := make(chan struct{})
				srv, m, s := connectWith(t, what, &program{func() {
					if m := manager.Swap(nil); m != nil {
						defer close(closed)
						wantClose(t, m)
					}
				}})
				node := enter(t, s, "/d/own")
				manager.Store(m)
				srv.Disconnect()
				go node.Remove(t.Context())
				select {
				case <-closed:
				case <-time.After(time.Minute):
					t.Error("Close was not called, or did not return in a minute")
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				wantErr(t, "Session", expect.Err(m.Session(ctx)), session.ErrClosed)
			})
		})
	}
}

func wantClose(t *testing.T, m *session.Manager) {
	t.Helper()
	began := time.Now()
	_ = m.Close()
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("Close took %v", d)
	}
}
