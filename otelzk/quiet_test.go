package otelzk_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// acquirer has the methods of each kind of lock.
type acquirer interface {
	Acquire(context.Context) (*queue.Lease, error)
	TryAcquire(context.Context) (*queue.Lease, error)
}

type opener func(*session.Manager) (acquirer, error)

// Hooks change nothing of what a session sends: not those of otelzk and lockz, and not hooks for everything.
func TestHooksChangeNoRequest(t *testing.T) {
	writer := func(m *session.Manager) (acquirer, error) { return rwlock.New(m, "/lock") }
	for kind, open := range map[string]opener{
		"mutex":    func(m *session.Manager) (acquirer, error) { return zklock.New(m, "/lock") },
		"handover": func(m *session.Manager) (acquirer, error) { return zklock.New(m, "/lock", zklock.WithLocalHandover(2)) },
		"kept": func(m *session.Manager) (acquirer, error) {
			return zklock.New(m, "/lock", zklock.WithLazyRelease(time.Second))
		},
		"writer":    writer,
		"semaphore": func(m *session.Manager) (acquirer, error) { return semaphore.New(m, "/lock", 1) },
		"reader": func(m *session.Manager) (acquirer, error) {
			rw, err := rwlock.New(m, "/lock")
			return rw.Reader(), err
		},
	} {
		t.Run(kind, func(t *testing.T) {
			block := open
			if kind == "reader" {
				block = writer
			}
			without := quietly(t, open, block, nil)
			for what, hooks := range map[string][]session.Trace{
				"all hooks":        {everyHook()},
				"otelzk and lockz": {otelzk.New(newTelemetry().opts...)},
			} {
				if diff := cmp.Diff(without, quietly(t, open, block, hooks)); diff != "" {
					t.Errorf("with %s (+) it sends other requests than without (-):\n%s", what, diff)
				}
			}
		})
	}
}

// everyHook has each hook of a Trace. Each returns the context that it got, and looks at what it is told.
func everyHook() session.Trace {
	var hooks session.Trace
	v := reflect.ValueOf(&hooks).Elem()
	var hook func(f reflect.Type) reflect.Value
	hook = func(f reflect.Type) reflect.Value {
		return reflect.MakeFunc(f, func(in []reflect.Value) []reflect.Value {
			out := make([]reflect.Value, f.NumOut())
			for i := range out {
				switch t := f.Out(i); {
				case t == reflect.TypeFor[context.Context]():
					out[i] = in[0]
				case t.Kind() == reflect.Func:
					out[i] = hook(t)
				default:
					out[i] = reflect.Zero(t)
				}
			}
			for _, arg := range in {
				if w, ok := arg.Interface().(session.WatchInfo); ok {
					w.Known()
				}
			}
			return out
		})
	}
	for i := range v.NumField() {
		v.Field(i).Set(hook(v.Type().Field(i).Type))
	}
	return hooks
}

// quietly returns the requests of a session that takes a lock, waits for it, tries it in vain, and loses its session
// while it holds. Those of one moment come in any order, and heartbeats at times of their own.
func quietly(t *testing.T, open, block opener, hooks []session.Trace) (sent []string) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t)
		server.Delay(time.Millisecond)
		opts := []session.Option{session.WithDialer(server.Dialer()), session.WithBackoff(time.Millisecond, time.Millisecond),
			session.WithLogger(slog.New(slog.DiscardHandler))}
		theirs, err := session.Connect(t.Context(), server.Hosts(), opts...)
		must(t, err)
		defer func() { _ = theirs.Close() }()
		rival, err := block(theirs)
		must(t, err)
		for _, h := range hooks {
			opts = append(opts, session.WithTrace(h))
		}
		ours, err := session.Connect(t.Context(), server.Hosts(), opts...)
		must(t, err)
		defer func() { _ = ours.Close() }()
		if hooks != nil {
			lockz.Handler(ours)
		}
		lock, err := open(ours)
		must(t, err)
		server.ResetRequests()
		pause := func() { time.Sleep(50 * time.Millisecond) }

		lease, err := lock.Acquire(t.Context())
		must(t, err)
		pause()
		must(t, lease.Release(t.Context()))
		time.Sleep(2 * time.Second)
		held, err := rival.Acquire(t.Context())
		must(t, err)
		if _, err := lock.TryAcquire(t.Context()); !errors.Is(err, queue.ErrBusy) {
			t.Error(err)
		}
		pause()
		waiting := background(func() error {
			var err error
			lease, err = lock.Acquire(t.Context())
			return err
		})
		pause()
		must(t, held.Release(t.Context()))
		must(t, <-waiting)
		pause()
		s, err := ours.Session(t.Context())
		must(t, err)
		must(t, server.Expire(t.Context(), s.ID()))
		<-lease.Done()
		pause()
		sent = requestsBut(t, server, theirs)
	})
	return sent
}

var nodeID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func requestsBut(t *testing.T, server *zktest.Server, other *session.Manager) (sent []string) {
	s, err := other.Session(t.Context())
	must(t, err)
	for _, r := range server.Requests() {
		switch r.Op {
		case zktest.OpPing, zktest.OpSync, zktest.OpMulti, zktest.OpConnect, zktest.OpClose:
		default:
			if r.Session != s.ID() {
				sent = append(sent, fmt.Sprint(r.Op, " ", nodeID.ReplaceAllString(r.Path, "ID")))
			}
		}
	}
	slices.Sort(sent)
	// A listing that has overtaken its create is made again.
	return slices.CompactFunc(sent, func(a, b string) bool { return a == b && strings.HasPrefix(a, "getChildren") })
}
