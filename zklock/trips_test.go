package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A lock that is free takes one round trip, and so do several that are taken together, also right after their Unlock. The
// Unlock takes one more.
func TestRoundTrips(t *testing.T) {
	const roundTrip = 20 * time.Millisecond
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		m := connect()
		var ten []zklock.ContextLocker
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
			ten = append(ten, newMutex(t, m, "/many/"+name))
		}
		two, err := zklock.Multi(ten[0], ten[1])
		must(t, err)
		all, err := zklock.Multi(ten...)
		must(t, err)
		for name, l := range map[string]interface {
			Lock(context.Context) error
			Unlock() error
		}{"one": newMutex(t, m, "/one"), "two": two, "ten": all, "a key": onlyKey{newKeyed(t, m, keysDir), "a"}} {
			must(t, l.Lock(t.Context())) // makes the directories
			must(t, l.Unlock())
			time.Sleep(time.Second)
			server.Delay(roundTrip / 2)
			for range 3 {
				began := time.Now()
				must(t, l.Lock(t.Context()))
				if took := time.Since(began); took != roundTrip {
					t.Errorf("%s: Lock takes %v", name, took)
				}
				began = time.Now()
				must(t, l.Unlock())
				if took := time.Since(began); took != roundTrip {
					t.Errorf("%s: Unlock takes %v", name, took)
				}
			}
			server.Delay(0)
			time.Sleep(time.Second)
		}
	})
}
