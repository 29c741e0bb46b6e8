package session_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Two callers of Children get one answer of the server. Each may change what it gets.
func TestChildrenAreTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		_, s := virtually(t, "any:2181", srv.Dialer(), session.WithTimeout(time.Minute))
		for _, path := range []string{"/d", "/d/a", "/d/b"} {
			_, err := s.Create(t.Context(), path, nil, session.Persistent)
			must(t, err)
		}
		hold := srv.HoldReply(zktest.On(zktest.OpGetChildren2, "/d"))
		srv.ResetRequests()
		all := make(chan []string, 3)
		list := func() {
			names, stat, err := s.Children(t.Context(), "/d")
			if err != nil || stat.NumChildren != 2 {
				t.Errorf("%v, %v", stat, err)
			}
			slices.Sort(names)
			all <- slices.Clone(names)
			clear(names)
			stat.NumChildren = 0
		}
		for range 3 { // of the first the length is not known, so the others wait and share an answer
			go list()
			synctest.Wait()
		}
		hold.Release()
		for range 3 {
			if names := <-all; !slices.Equal(names, []string{"a", "b"}) {
				t.Errorf("names %q", names)
			}
		}
		if n := srv.Count(zktest.On(zktest.OpGetChildren2, "/d")); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
	})
}
