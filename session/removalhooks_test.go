package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// removals notes what hooks are told of deletes.
type removals struct {
	mu    sync.Mutex
	lines []string
}

func (r *removals) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *removals) hooks() session.Trace {
	return session.Trace{
		Request: func(ctx context.Context, i session.RequestInfo) (context.Context, func(error)) {
			if i.Op != "delete" {
				return ctx, nil
			}
			r.add("delete %s for %v", i.Path, ctx.Value(callerKey{}))
			return ctx, func(err error) {
				r.add("deleted: lost %v, gone %v", errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, zk.ErrNoNode))
			}
		},
		Retry: func(ctx context.Context, i session.RetryInfo) {
			if i.Op == "delete" {
				r.add("again after %d for %v", i.Try, ctx.Value(callerKey{}))
			}
		},
	}
}

type callerKey struct{}

// A removal is sent before all that its caller sends afterwards, with hooks as without them. The hooks are told of each try.
func TestRemovalWithHooks(t *testing.T) {
	for name, hooked := range map[string]bool{"with hooks": true, "without": false} {
		for _, cut := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, cut %v", name, cut), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv, told := zktest.Start(t), new(removals)
					var opts []session.Option
					if hooked {
						opts = append(opts, session.WithTrace(told.hooks()))
					}
					_, s := virtually(t, "h:1", srv.Dialer(), opts...)
					if _, err := makeNode(t.Context(), s, "/n", nil); err != nil {
						t.Fatal(err)
					}
					synctest.Wait() // what Connect leaves behind is over
					srv.ResetRequests()
					if cut {
						srv.CutAfterCommit(zktest.On(zktest.OpDelete, "/n"))
					}
					r := s.Remove(context.WithValue(t.Context(), callerKey{}, "caller"), "/n")
					if !cut {
						if _, err := s.Exists(t.Context(), "/other"); err != nil {
							t.Fatal(err)
						}
					}
					<-r.Done()
					if r.Err() != nil {
						t.Error(r.Err())
					}
					synctest.Wait()
					if all := srv.Requests(); all[0].Op != zktest.OpDelete {
						t.Errorf("the first request is %v", all[0])
					}
					var want []string
					switch {
					case hooked && cut:
						want = []string{
							"delete /n for caller", "deleted: lost true, gone false", "again after 1 for caller",
							"delete /n for caller", "deleted: lost false, gone true",
						}
					case hooked:
						want = []string{"delete /n for caller", "deleted: lost false, gone false"}
					}
					if !slices.Equal(told.lines, want) {
						t.Errorf("the hooks are told %q, want %q", told.lines, want)
					}
				})
			})
		}
	}
}

// A hook that blocks in the delete of a node holds up the call that has begun the delete, and no other Remove of the node: a
// turn that is lost can be left by two goroutines at once.
func TestBlockedHookOfARemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, blocked, goOn := zktest.Start(t), make(chan struct{}), make(chan struct{})
		_, s := virtually(t, "h:1", srv.Dialer(), session.WithTrace(session.Trace{
			Request: func(ctx context.Context, i session.RequestInfo) (context.Context, func(error)) {
				if i.Op == "delete" {
					close(blocked)
					<-goOn
				}
				return ctx, nil
			},
		}))
		node, err := s.Enter(t.Context(), session.NewNode{Dir: "/d", Name: "n-"})
		if err != nil {
			t.Fatal(err)
		}
		first := make(chan *session.Removal)
		go func() { first <- node.Remove(t.Context()) }()
		<-blocked
		second := make(chan *session.Removal)
		go func() { second <- node.Remove(t.Context()) }()
		synctest.Wait()
		var r *session.Removal
		select {
		case r = <-second:
		default:
			t.Error("the second Remove waits for the hook of the first")
		}
		close(goOn)
		if f := <-first; r != nil && r != f {
			t.Error("two calls of Remove return two removals")
		} else {
			<-f.Done()
		}
		if r == nil {
			<-second
		}
	})
}
