package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// A call that shares a watch with one whose connection has ended meanwhile asks again. Its own connection is fine, so it does not
// wait for the end of that.
func TestJoinWatchOfEndedConnection(t *testing.T) {
	for what, call := range map[string]func(context.Context, *session.Session, string) error{
		"Watch": func(ctx context.Context, s *session.Session, d string) error {
			_, _, _, err := s.Watch(ctx, d)
			return err
		},
		"List": func(ctx context.Context, s *session.Session, d string) error {
			_, err := s.List(ctx, d, session.ListOptions{Data: true, Watch: true})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				type slow struct{}
				steps := map[string]chan struct{}{"sync": make(chan struct{}), "getData": make(chan struct{})}
				e, srv := virtualEntry(t, session.WithTrace(session.Trace{
					Request: func(ctx context.Context, i session.RequestInfo) (context.Context, func(error)) {
						if step := steps[i.Op]; step != nil && ctx.Value(slow{}) != nil {
							<-step // as a goroutine that gets no processor
						}
						return ctx, nil
					},
				}))
				first, second := make(chan error, 1), make(chan error, 1)
				go func() {
					_, err := e.s.List(context.WithValue(t.Context(), slow{}, true), e.d, session.ListOptions{Sync: true, Data: true, Watch: true})
					first <- err
				}()
				synctest.Wait()
				srv.Disconnect()
				must(t, e.s.Sync(t.Context(), "/")) // there is another connection
				steps["sync"] <- struct{}{}
				synctest.Wait() // it has made the watch, and has not sent the request
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				go func() { second <- call(ctx, e.s, e.d) }()
				synctest.Wait()
				close(steps["getData"])
				close(steps["sync"])
				must(t, <-first)
				must(t, <-second)
			})
		})
	}
}

// A call may end while another one sets the watch that both share. It does not look at the answer, which can come at the same
// time: the race detector sees that.
func TestCancelledListBesideWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type slow struct{}
		goOn := make(chan struct{})
		e, _ := virtualEntry(t, session.WithTrace(session.Trace{
			Request: func(ctx context.Context, i session.RequestInfo) (context.Context, func(error)) {
				if i.Op == "getData" && ctx.Value(slow{}) != nil {
					<-goOn
				}
				return ctx, nil
			},
		}))
		first, second := make(chan error, 1), make(chan error, 1)
		go func() {
			_, _, _, err := e.s.Watch(context.WithValue(t.Context(), slow{}, true), e.d)
			first <- err
		}()
		synctest.Wait() // it has made the watch, and has not sent the request
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := e.s.List(ctx, e.d, session.ListOptions{Data: true, Watch: true})
			second <- err
		}()
		synctest.Wait()
		cancel()
		close(goOn)
		wantErr(t, "List", <-second, context.Canceled)
		must(t, <-first)
	})
}
