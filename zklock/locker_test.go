package zklock_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// onLost is called once for each hold that is lost, with the reason, and not for a hold that is unlocked.
// Unlock after a loss does not panic.
func TestLockerOnLost(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		m := connect()
		losses := make(chan error, 10)
		lost := func(err error) { losses <- err }
		for _, l := range []sync.Locker{newMutex(t, m, lockPath).Locker(lost), newMulti(t, newMutex(t, m, lockPath+"-b")).Locker(lost)} {
			l.Lock()
			synctest.Wait()
			l.Unlock()
			l.Lock()
			must(t, server.Expire(t.Context(), testserver.Session(t, m).ID()))
			wantErr(t, "onLost", receive(t, "the loss", losses), session.ErrLost)
			synctest.Wait()
			if n := len(losses); n != 0 {
				t.Fatalf("told %d times more of one loss", n)
			}
			l.Unlock()
		}
	})
}
