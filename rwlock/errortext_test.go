package rwlock_test

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
)

// Each error reads as one sentence: what was called, on which path, and what went wrong.
func TestErrorTexts(t *testing.T) {
	m, proxy := proxied(t)
	dir := testserver.Path(t)
	lock := newLock(t, m, dir)
	newErr := func(m *session.Manager, path string, opts ...rwlock.Option) error {
		_, err := rwlock.New(m, path, opts...)
		return err
	}
	owner := queue.WithOwner(patient(t))
	ended, cancel := context.WithCancel(owner)
	cancel()
	texts := map[string]testserver.ErrorText{
		"bad options":           {Err: newErr(m, "/a", nil, rwlock.WithName("")), Want: "rwlock: invalid argument: nil option; empty name"},
		"Unlock without Lock":   {Err: lock.Unlock(), Want: "unlock /a: lock is not held"},
		"RUnlock without RLock": {Err: lock.RUnlock(), Want: "unlock /a: lock is not held"},
		"cancelled RLock":       {Err: lock.RLock(ended), Want: "acquire /a: context canceled"},
	}
	must(t, lock.RLock(owner))
	texts["upgrade"] = testserver.ErrorText{Err: lock.Lock(owner), Want: "acquire /a: a read lock cannot become a write lock"}
	texts["cancelled upgrade"] = testserver.ErrorText{Err: lock.Lock(ended), Want: "acquire /a: context canceled"}
	expire(t, proxy, m)
	waitLost(t, lock.Reader().Held)
	texts["upgrade of a lost one"] = testserver.ErrorText{Err: lock.Lock(owner), Want: "acquire /a: session 0x1: lost: expired by the server"}
	texts["RLock of a lost one"] = testserver.ErrorText{Err: lock.RLock(owner), Want: "acquire /a: session 0x1: lost: expired by the server"}
	texts["RUnlock of a lost one"] = testserver.ErrorText{Err: lock.RUnlock(), Want: "unlock /a: session 0x1: lost: expired by the server, since NOW"}
	must(t, m.Close())
	texts["closed"] = testserver.ErrorText{Err: lock.RLock(owner), Want: "acquire /a: session manager closed"}
	testserver.CheckTexts(t, dir, texts)
}
