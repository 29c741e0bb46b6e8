package zklock_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Each error reads as one sentence: what was called, on which path, and what went wrong.
func TestErrorTexts(t *testing.T) {
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr())
	dir := testserver.Path(t)
	lock := newMutex(t, m, dir)
	newErr := func(m *session.Manager, path string, opts ...zklock.Option) error {
		_, err := zklock.New(m, path, opts...)
		return err
	}
	multiErr := func(locks ...zklock.ContextLocker) error {
		_, err := zklock.Multi(locks...)
		return err
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	texts := map[string]testserver.ErrorText{
		"nil manager":                        {Err: newErr(nil, "/a"), Want: "zklock: invalid argument: nil session manager"},
		"bad path":                           {Err: newErr(m, "a"), Want: "zklock: invalid argument: path \"a\" does not begin with a slash"},
		"root":                               {Err: newErr(m, "/"), Want: "zklock: invalid argument: a lock needs a directory of its own below /"},
		"two bad options":                    {Err: newErr(m, "/a", nil, zklock.WithName("")), Want: "zklock: invalid argument: nil option; empty name"},
		"no hand-over":                       {Err: newErr(m, "/a", zklock.WithLocalHandover(0)), Want: "zklock: invalid argument: WithLocalHandover(0): want at least 1"},
		"no locks":                           {Err: multiErr(), Want: "zklock: invalid argument: Multi: no locks"},
		"no lock of this module":             {Err: multiErr(lock, ownType{lock}), Want: "zklock: invalid argument: Multi: lock 1, a zklock_test.ownType, was not made by this module"},
		"another manager":                    {Err: multiErr(lock, newMutex(t, connect(t), "/b")), Want: "zklock: invalid argument: Multi: lock 1, /b, has another manager than lock 0, /a"},
		"nil lock":                           {Err: multiErr(lock, nil), Want: "zklock: invalid argument: Multi: lock 1 is nil"},
		"lock twice":                         {Err: multiErr(lock, newMutex(t, m, dir)), Want: "zklock: invalid argument: Multi: /a is there twice"},
		"nil function":                       {Err: lock.Do(t.Context(), nil), Want: "acquire /a: invalid argument: Do of a nil function"},
		"Unlock without Lock":                {Err: lock.Unlock(), Want: "unlock /a: lock is not held"},
		"cancelled Lock":                     {Err: lock.Lock(ended), Want: "acquire /a: context canceled"},
		"Revoke without a manager":           {Err: zklock.Revoke(ended, nil, dir), Want: "revoke /a: invalid argument: nil session manager"},
		"Revoke of a lock":                   {Err: zklock.Revoke(ended, m, dir), Want: "revoke /a: invalid argument: the last element is no contender's name"},
		"cancelled Revoke":                   {Err: zklock.Revoke(ended, m, dir+"/lock-0000000001"), Want: "revoke /a/lock-0000000001: context canceled"},
		"Revoke of a contender that is gone": {Err: zklock.Revoke(t.Context(), m, dir+"/lock-0000000001"), Want: "revoke /a/lock-0000000001: getData /a/lock-0000000001: zk: node does not exist"},
	}
	_, err := lock.Contenders(ended)
	texts["cancelled Contenders"] = testserver.ErrorText{Err: err, Want: "contenders of /a: context canceled"}

	other, err := semaphore.New(m, dir, 1)
	must(t, err)
	must(t, other.Lock(patient(t)))
	texts["another kind"] = testserver.ErrorText{Err: lock.Lock(patient(t)), Want: "acquire /a: another kind of lock, or another configuration, at this path: a mutex lock finds a lease of a semaphore"}
	must(t, other.Unlock())

	refused := dir + "/refused"
	_, err = testserver.Admin(t).Create(refused, nil, 0, zk.WorldACL(zk.PermRead))
	must(t, err)
	texts["refused"] = testserver.ErrorText{Err: newMutex(t, m, refused).Lock(patient(t)), Want: "acquire /a/refused: create /a/refused/_c_ID-lock-: no right to create in /a/refused for world: zk: not authenticated"}

	owner := queue.WithOwner(patient(t))
	held := newMutex(t, m, dir+"/held")
	must(t, held.Lock(owner))
	texts["cancelled Lock of the holder"] = testserver.ErrorText{Err: held.Lock(cancelled(owner)), Want: "acquire /a/held: context canceled"}
	multi, err := zklock.Multi(newMutex(t, m, dir), newMutex(t, m, dir+"-second"))
	must(t, err)
	texts["cancelled Lock of several"] = testserver.ErrorText{Err: multi.Lock(ended), Want: "acquire /a: context canceled"}
	texts["Unlock of several without Lock"] = testserver.ErrorText{Err: multi.Unlock(), Want: "unlock /a, /a-second: lock is not held"}
	several, err := zklock.Multi(newMutex(t, m, dir), held)
	must(t, err)
	texts["Lock of several, one of them held"] = testserver.ErrorText{Err: several.Lock(owner), Want: "acquire /a, /a/held: invalid argument: the owner of the context holds /a/held already"}
	lease, err := newMutex(t, m, dir).Acquire(patient(t))
	must(t, err)
	pair, err := zklock.Multi(newMutex(t, m, dir+"-first"), newMutex(t, m, dir+"-second"))
	must(t, err)
	must(t, pair.Lock(patient(t)))
	expire(t, proxy, m)
	waitLost(t, held)
	texts["Release of a lost lease"] = testserver.ErrorText{Err: lease.Release(patient(t)), Want: "lock /a: session 0x1: lost: expired by the server"}
	texts["Lock of a lost one"] = testserver.ErrorText{Err: held.Lock(owner), Want: "acquire /a/held: session 0x1: lost: expired by the server"}
	texts["Unlock of a lost one"] = testserver.ErrorText{Err: held.Unlock(), Want: "unlock /a/held: session 0x1: lost: expired by the server, since NOW"}
	texts["Unlock of several lost ones"] = testserver.ErrorText{Err: pair.Unlock(), Want: "unlock /a-first, /a-second: lock /a-second: session 0x1: lost: expired by the server; lock /a-first: session 0x1: lost: expired by the server, since NOW"}
	must(t, m.Close())
	texts["closed"] = testserver.ErrorText{Err: lock.Lock(t.Context()), Want: "acquire /a: session manager closed"}
	testserver.CheckTexts(t, dir, texts)
}

func cancelled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
