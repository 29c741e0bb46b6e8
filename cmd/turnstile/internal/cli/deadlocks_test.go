package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Three processes take two locks each, one after the other, so that they wait in a circle. Labels say whether the locks of a
// process belong together.
func TestDeadlocks(t *testing.T) {
	for label, certain := range map[string]bool{"order": true, "": false} {
		servers(t, func(t *testing.T, w *world) {
			ctx, cancel := context.WithCancel(queue.WithLabel(t.Context(), label))
			names := []string{"a", "b", "c"}
			var waits []chan struct{}
			managers := make([]*session.Manager, len(names))
			take := func(m *session.Manager, name string) error {
				mx, err := zklock.New(m, w.top+"/"+name)
				if err != nil {
					return err
				}
				return mx.Lock(ctx)
			}
			for i, name := range names {
				managers[i] = w.manager(t)
				if err := take(managers[i], name); err != nil {
					t.Fatal(err)
				}
			}
			w.call(t.Context(), "deadlocks", w.top).want(t, 0)
			for i, m := range managers {
				done := make(chan struct{})
				waits = append(waits, done)
				go func() {
					defer close(done)
					_ = take(m, names[(i+1)%len(names)])
				}()
			}
			defer func() {
				cancel()
				for _, done := range waits {
					<-done
				}
			}()
			for _, name := range names {
				zktest.Eventually(t, testserver.Patience, "a waiter of "+name, func() bool {
					children, _, err := w.admin.Children(w.top + "/" + name)
					return err == nil && len(children) == 2
				})
			}
			text := "may wait for each other"
			if certain {
				text = "These wait for each other:"
			}
			got := w.call(t.Context(), "deadlocks", w.top)
			got.want(t, codeNo)
			for _, text := range []string{text, " waits for " + w.top + "/a, in the queue for ", ", which holds it\n"} {
				if !strings.Contains(got.stdout, text) {
					t.Errorf("%q lacks %q", got.stdout, text)
				}
			}
			var out deadlocksJSON
			got = w.call(t.Context(), "deadlocks", "--json")
			got.want(t, codeNo)
			if err := json.Unmarshal([]byte(got.stdout), &out); err != nil || len(out.Circles) != 1 || len(out.Circles[0].Waits) != 3 ||
				out.Circles[0].Certain != certain || !out.Complete {
				t.Errorf("%s: %v", got.stdout, err)
			}
		})
	}
}
