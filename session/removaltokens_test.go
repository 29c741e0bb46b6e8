package session_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// More removals than may be in flight at once are hindered by no hook that blocks or ends its goroutine, and by no lost
// connection: those that come afterwards are carried out.
func TestRemovalsBesideBadHooks(t *testing.T) {
	for _, what := range []string{"block", "exit", "exit at the end"} {
		for _, cut := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, cut %v", what, cut), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var seen sync.Map // a hook that ends its goroutine does so at the first try only
					block := make(chan struct{})
					defer close(block)
					srv, s := limited(t, 1000, session.WithTrace(session.Trace{
						Request: func(ctx context.Context, i session.RequestInfo) (context.Context, func(error)) {
							if i.Op != "delete" || !strings.HasPrefix(i.Path, "/d/bad") {
								return ctx, nil
							}
							if _, again := seen.LoadOrStore(i.Path, true); again && what != "block" {
								return ctx, nil
							}
							switch what {
							case "block":
								<-block
							case "exit":
								runtime.Goexit()
							}
							return ctx, func(error) { runtime.Goexit() }
						},
					}))
					for _, name := range []string{"bad", "good"} {
						var all []*core.Removal
						for i := range 300 {
							_, err := s.Create(t.Context(), fmt.Sprint("/d/", name, i), nil, session.Ephemeral)
							must(t, err)
						}
						if cut && name == "bad" {
							srv.CutBefore(func(r zktest.Request) bool { return r.Op == zktest.OpDelete })
						}
						for i := range 300 {
							all = append(all, (*core.Session)(s).Remove(t.Context(), fmt.Sprint("/d/", name, i)))
						}
						if name == "bad" && what == "block" {
							synctest.Wait()
							continue
						}
						for _, r := range all {
							<-r.Done()
							must(t, r.Err())
						}
					}
				})
			})
		}
	}
}
