package session_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// When a connection breaks with 16 creates in doubt in one directory, one listing or two tell what became of all of them.
func TestManyDoubtsShareListings(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const doubts = 16
			srv := zktest.Start(t)
			_, s := virtually(t, "h:1", srv.Dialer())
			together := func(dir string) []error {
				var wg sync.WaitGroup
				all := make([]error, doubts)
				for i := range all {
					wg.Go(func() {
						name := "n-"
						if fixed {
							name += string(rune('a' + i))
						}
						_, all[i] = s.Enter(t.Context(), session.NewNode{Dir: dir, Name: name, Fixed: fixed})
					})
				}
				wg.Wait()
				return all
			}
			for _, before := range []string{"/a", "/b", "/c", "/d/e"} {
				must(t, errors.Join(together(before)...))
			}
			creates := zktest.On(zktest.OpCreate, "/d/")
			srv.ResetRequests()
			held := srv.HoldReply(creates)
			ended := make(chan error, 1)
			go func() { ended <- errors.Join(together("/d")...) }()
			<-held.Hit()
			time.Sleep(time.Second)        //nolint:forbidigo // in a bubble
			inFlight := srv.Count(creates) // all, if the window has room for them
			srv.ResetRequests()
			srv.Disconnect()
			must(t, <-ended)
			if n := srv.Count(zktest.Any(zktest.OpGetChildren, zktest.OpGetChildren2)); n > 3 {
				t.Errorf("fixed %v: %d listings for %d doubts", fixed, n, inFlight)
			}
			if n := srv.Count(creates); n > doubts-inFlight {
				t.Errorf("fixed %v: %d creates after %d were in doubt", fixed, n, inFlight)
			}
		})
	}
}
