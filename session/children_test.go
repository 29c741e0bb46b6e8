package session_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/zktest"
)

// Two callers of Children get one answer of the server. Each may change what it gets.
func TestChildrenAreTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, srv := virtualEntry(t)
		e.makes("a", "b")
		release := e.crowds(srv)
		all := make(chan []string, 3)
		list := func() {
			names, stat, err := e.s.Children(t.Context(), e.d)
			if err != nil || stat.NumChildren != 2 {
				t.Errorf("%v, %v", stat, err)
			}
			slices.Sort(names)
			all <- slices.Clone(names)
			clear(names)
			stat.NumChildren = 0
		}
		for range 3 {
			go list()
			synctest.Wait()
		}
		release()
		for range 3 {
			if names := <-all; !slices.Equal(names, []string{"a", "b"}) {
				t.Errorf("names %q", names)
			}
		}
		if n := srv.Count(zktest.On(zktest.OpGetChildren2, e.d)); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
	})
}
