package zklock_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// lose locks mx and expires its session. The holder then still has the slot.
func lose(t *testing.T, proxy *zktest.Proxy, m *session.Manager, mx *zklock.Mutex) {
	t.Helper()
	must(t, mx.Lock(patient(t)))
	expire(t, proxy, m)
	waitLost(t, mx)
}
