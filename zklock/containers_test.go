package zklock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A call that is cancelled while it makes its directories leaves none that servers keep: before 3.10 they remove only
// containers that have had a child.
func TestCancelledCallsLeaveNoDirectory(t *testing.T) {
	for what, newLock := range map[string]func(*testing.T, *session.Manager) slotted{
		"mutex": func(t *testing.T, m *session.Manager) slotted { return newMutex(t, m, "/a/b/lock") },
		"multi": func(t *testing.T, m *session.Manager) slotted {
			return newMulti(t, newMutex(t, m, "/a/b/first"), newMutex(t, m, "/a/c/second"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
				lock, witness := newLock(t, connect()), testserver.Session(t, connect())
				server.Delay(time.Millisecond)
				for patience := time.Duration(0); ; patience += time.Millisecond / 4 {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					err := lock.Lock(ctx)
					cancel()
					if err == nil {
						must(t, lock.Unlock())
					}
					time.Sleep(12 * time.Second) // more than a session timeout
					for testserver.Switch(server).ReapContainers() > 0 {
					}
					children, _, left := witness.Children(t.Context(), "/a")
					if !errors.Is(left, zk.ErrNoNode) {
						t.Errorf("cancelled after %v: /a is there, with %v: %v", patience, children, left)
					}
					if err == nil {
						return
					}
				}
			})
		})
	}
}

// A call that has little time gets its lock in the end if it is repeated: what one has made serves the next.
func TestShortCallsGetOn(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		mx := newMutex(t, connect(), "/lock")
		server.Delay(10 * time.Millisecond)
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Millisecond) // a round trip, and a bit
			defer cancel()
			if mx.Lock(ctx) == nil {
				must(t, mx.Unlock())
				return
			}
			time.Sleep(time.Second)
		}
		t.Error("no lock")
	})
}
