package size

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A session owns as many nodes as it may, with short and with long paths, and ends. The servers live on, start again from
// their logs, and have forgotten all of its nodes. One more node is refused before the session ends.
func TestSessionEndFitsServers(t *testing.T) {
	longtest.Only(t)
	for _, length := range []int{200, 262, 16_000} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			e := server(t, zktest.Servers(3))
			m, err := session.Connect(t.Context(), e.ConnectString(), quiet, session.WithTimeout(20*time.Second))
			must(t, err)
			defer m.Close()
			s, err := m.Session(t.Context())
			must(t, err)
			name := func(i int) string {
				head := fmt.Sprintf("n%06d", i)
				return head + strings.Repeat("x", length-len("/")-len(head))
			}
			made, refused := 0, error(nil)
			for next := 0; refused == nil; {
				var all errgroup.Group // those that enter together share listings
				var entered atomic.Int64
				for range 64 {
					node := session.NewNode{Dir: "/", Name: name(next), Fixed: true}
					next++
					all.Go(func() error {
						_, err := s.Enter(t.Context(), node)
						if err == nil {
							entered.Add(1)
						}
						return err
					})
				}
				refused = all.Wait()
				made += int(entered.Load())
			}
			if !errors.Is(refused, session.ErrTooManyNodes) {
				t.Fatal(refused)
			}
			if bytes := made * (length + 4); bytes > 1<<20 || bytes+length+4 <= 1<<20 {
				t.Errorf("%d nodes with %d bytes", made, bytes)
			}
			t.Log(errors.Unwrap(refused)) // without the path
			must(t, m.Close())
			for i := range e.Len() {
				must(t, e.Kill(i))
			}
			for i := range e.Len() {
				must(t, e.Launch(i))
			}
			must(t, e.WaitReady(t.Context()))
			m, err = session.Connect(t.Context(), e.ConnectString(), quiet, session.WithTimeout(20*time.Second))
			must(t, err)
			defer m.Close()
			s, err = m.Session(t.Context())
			must(t, err)
			left, _, err := s.Children(t.Context(), "/")
			must(t, err)
			if len(left) != 1 { // /zookeeper
				t.Errorf("%d nodes are left", len(left)-1)
			}
			longtest.Covered(t, "%d paths of %d bytes in one session that ends", made, length)
		})
	}
}
