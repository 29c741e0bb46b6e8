package session

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
)

// The session ends while the answer of a server that refuses a delete is on its way through this process. The Removal ends once,
// with the one or the other.
func TestRefusalAtTheEndOfSession(t *testing.T) {
	for what, both := range map[string]func(refused, ended func()){
		"the end first": func(refused, ended func()) { ended(); refused() },
		"at once":       func(refused, ended func()) { go refused(); ended() },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := unwatched(t, 10*time.Second)
				r := s.Remove(t.Context(), "/n")
				both(func() { s.removals.refuse(r, zk.ErrNoAuth) }, func() {
					_ = s.mark(ErrClosed)
					<-r.Done()
				})
				if synctest.Wait(); !errors.Is(r.Err(), zk.ErrNoAuth) && !errors.Is(r.Err(), ErrClosed) {
					t.Error(r.Err())
				}
			})
		})
	}
}
