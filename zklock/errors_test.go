package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// says compares the text of an error. What is of no account in it is replaced.
func says(t *testing.T, err error, want string) {
	t.Helper()
	testserver.CheckTexts(t, "/a", map[string]testserver.ErrorText{"text": {Err: err, Want: want}})
}

// Each error reads as one sentence: what was called, on which path, and what went wrong.
func TestErrorTexts(t *testing.T) {
	run(t, func(w *world) {
		m := w.Connect()
		ctx, ended := w.Context(), cancelled(w.Context())
		lock := newMutex(t, m, "/a")
		newErr := func(m *session.Manager, path string, opts ...zklock.Option) error {
			return expect.Err(zklock.New(m, path, opts...))
		}
		multiErr := func(locks ...zklock.ContextLocker) error {
			return expect.Err(zklock.Multi(locks...))
		}
		says(t, newErr(nil, "/a"), "zklock: invalid argument: nil session manager")
		says(t, newErr(m, "/a", nil, zklock.WithName("")), "zklock: invalid argument: nil option; empty name")
		says(t, newErr(m, "/a", zklock.WithLocalHandover(0)), "zklock: invalid argument: WithLocalHandover(0): want at least 1")
		says(t, multiErr(), "zklock: invalid argument: Multi: no locks")
		says(t, multiErr(lock, ownType{lock}),
			"zklock: invalid argument: Multi: lock 1, a zklock_test.ownType, was not made by this module")
		says(t, multiErr(lock, newMutex(t, w.Connect(), "/b")),
			"zklock: invalid argument: Multi: lock 1, /b, has another manager than lock 0, /a")
		says(t, multiErr(lock, newMutex(t, m, "/a")), "zklock: invalid argument: Multi: /a is there twice")
		says(t, lock.Do(ctx, nil), "acquire /a: invalid argument: Do of a nil function")
		says(t, lock.Unlock(), "unlock /a: lock is not held")
		says(t, lock.Lock(ended), "acquire /a: context canceled")
		says(t, expect.Err(lock.Contenders(ended)), "contenders of /a: context canceled")
		const gone = "/a/lock-0000000001"
		says(t, zklock.Revoke(ctx, nil, gone), "revoke "+gone+": invalid argument: nil session manager")
		says(t, zklock.Revoke(ctx, m, "/a"), "revoke /a: invalid argument: the last element is no contender's name")
		says(t, zklock.Revoke(ended, m, gone), "revoke "+gone+": context canceled")
		says(t, zklock.Revoke(ctx, m, gone), "revoke "+gone+": getData "+gone+": zk: node does not exist")

		other := newSem(t, m, "/a", 1)
		w.Must(other.Lock(ctx))
		says(t, lock.Lock(ctx), "acquire /a: another kind of lock, or another configuration, at this path: "+
			"a mutex lock finds a lease of a semaphore")
		w.Must(other.Unlock())
		w.Make("/refused", "", zk.PermRead)
		says(t, newMutex(t, m, "/refused").Lock(ctx), "acquire /refused: create /refused/_c_ID-lock-: "+
			"no right to create in /refused for world: zk: not authenticated")

		owner := queue.WithOwner(ctx)
		held, multi := newMutex(t, m, "/held"), newMulti(t, lock, newMutex(t, m, "/second"))
		w.Must(held.Lock(owner))
		w.Must(multi.Lock(ctx))
		says(t, newMulti(t, newMutex(t, m, "/free"), held).Lock(owner),
			"acquire /free, /held: invalid argument: the owner of the context holds /held already")
		lease, err := newMutex(t, m, "/lease").Acquire(ctx)
		w.Must(err)
		w.Lose(m)
		const lost = "session 0x1: lost: expired by the server"
		says(t, lease.Release(ctx), "lock /lease: "+lost)
		says(t, held.Lock(owner), "acquire /held: "+lost)
		says(t, held.Unlock(), "unlock /held: "+lost+", since NOW")
		says(t, multi.Unlock(), "unlock /a, /second: lock /second: "+lost+"; lock /a: "+lost+", since NOW")
		says(t, multi.Unlock(), "unlock /a, /second: lock is not held")
		w.Must(m.Close())
		says(t, lock.Lock(ctx), "acquire /a: session manager closed")
		says(t, zklock.Revoke(ctx, m, gone), "revoke "+gone+": session manager closed")
	})
}

// A wait that ends by its context says who was ahead, for all kinds of lock.
func TestWaitErrors(t *testing.T) {
	run(t, func(w *world) {
		other, me := w.Connect(), w.Connect()
		label := queue.WithLabel(w.Context(), "request 42")
		wait := func(lock func(context.Context) error, want string) {
			t.Helper()
			ctx, cancel := context.WithCancel(w.Context())
			c := w.Go(func() error { return lock(ctx) })
			w.Pass(time.Second)
			cancel()
			says(t, c.Err(), "acquire "+want)
			w.Pass(time.Second)
		}
		rename := func(dir, data string) {
			for _, node := range w.Nodes(dir) {
				w.Write(node, data)
			}
		}
		local := zklock.WithLocalHandover(1)
		w.Must(newMutex(t, other, "/m").Lock(w.Context()))
		rename("/m", "web-3/4711")
		const web = "/m: context canceled (held by web-3/4711, in the queue for 1s)"
		wait(newMutex(t, me, "/m").Lock, web)
		wait(newMutex(t, me, "/m", local).Lock, web)
		wait(newMulti(t, newMutex(t, me, "/free"), newMutex(t, me, "/m")).Lock, web)
		w.Must(newMutex(t, me, "/own").Lock(label))
		wait(newMutex(t, me, "/own").Lock, `/own: context canceled (held by this process, "request 42", in the queue for 1s)`)
		here := newMutex(t, me, "/here", local)
		w.Must(here.Lock(w.Context()))
		wait(here.Lock, "/here: context canceled (held by this process for 1s)")

		rw, mine := newRW(t, other, "/rw"), newRW(t, me, "/rw")
		w.Must(errors.Join(rw.RLock(w.Context()), rw.RLock(w.Context())))
		rename("/rw", "reader")
		wait(mine.Lock, "/rw: context canceled (held by reader, in the queue for 1s; 1 more ahead)")
		writing := w.Go(func() error { return rw.Lock(label) })
		rename("/rw", "reader")
		wait(mine.RLock, "/rw: context canceled (behind reader, in the queue for 1s)")
		w.Must(errors.Join(rw.RUnlock(), rw.RUnlock(), writing.Err()))
		wait(mine.RLock, "/rw: context canceled (held by reader, in the queue for 1s)")

		for dir, c := range map[string]struct {
			leases string
			opts   []semaphore.Option
		}{"/s": {"/s", nil}, "/c": {"/c/leases", []semaphore.Option{semaphore.WithCuratorLayout()}}} {
			sem := newSem(t, other, dir, 2, c.opts...)
			w.Must(errors.Join(sem.Lock(w.Context()), sem.Lock(w.Context())))
			rename(c.leases, "user")
			wait(newSem(t, me, dir, 2, c.opts...).Lock,
				c.leases+": context canceled (2 of 2 leases taken; held by user, in the queue for 1s; 1 more ahead)")
		}

		lost := newMutex(t, me, "/lost")
		w.Must(lost.Lock(w.Context()))
		w.Pass(time.Second) // it watches its node by now
		w.Remove(w.Nodes("/lost")[0])
		wait(lost.Lock, "/lost: context canceled (this process has lost the lock, and has not unlocked it yet)")
	})
}

// A wait that ends while there is no connection says so. While the network drops everything, unnoticed as yet, it names the
// server that does not answer, whether the request for a place is in flight, or it has waited and a heartbeat is.
func TestWaitErrorWithoutAnswer(t *testing.T) {
	silence := func(w *world) {
		w.Blackhole(zktest.Both)
		w.Pass(3500 * time.Millisecond) // less than the client takes to notice
	}
	for what, c := range map[string]struct {
		begin func(*world)
		waits bool // before that
		says  []string
	}{
		"no connection":                {(*world).Cut, true, []string{"(not connected"}},
		"no answer to a heartbeat":     {silence, true, []string{"no answer from zk0:2181 for ", "; held by "}},
		"no answer to the acquisition": {silence, false, []string{"no answer from zk0:2181 for "}},
	} {
		for _, opts := range [][]zklock.Option{nil, {zklock.WithLocalHandover(1)}} {
			run(t, func(w *world) {
				m := w.Connect()
				w.Must(newMutex(t, w.Connect(), lockPath).Lock(w.Context()))
				ctx, cancel := context.WithCancel(w.Context())
				mx, begun := newMutex(t, m, lockPath, opts...), make(chan struct{})
				locking := w.Go(func() error {
					<-begun
					return mx.Lock(ctx)
				})
				if c.waits {
					close(begun)
					w.Pass(0)
					c.begin(w)
				} else {
					go close(begun)
					w.Blackhole(zktest.Both)
					c.begin(w)
				}
				cancel()
				err := locking.Err()
				w.Want(what, err, context.Canceled)
				for _, text := range c.says {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("%s: %v does not say %q", what, err, text)
					}
				}
				w.Refuse(false)
				w.Heal()
			})
		}
	}
}

// The text of a wait that ends has the cause that the caller gave its context, and the error does not match it.
func TestWaitErrorCause(t *testing.T) {
	run(t, func(w *world) {
		w.Must(newMutex(t, w.Connect(), lockPath).Lock(w.Context()))
		cause := fmt.Errorf("the client has hung up: %w", session.ErrLost)
		for _, opts := range [][]zklock.Option{nil, {zklock.WithLocalHandover(1)}} {
			ctx, cancel := context.WithCancelCause(w.Context())
			mx := newMutex(t, w.Connect(), lockPath, opts...)
			locking := w.Go(func() error { return mx.Lock(ctx) })
			cancel(cause)
			err := locking.Err()
			w.Want("Lock", err, context.Canceled)
			if errors.Is(err, session.ErrLost) || !strings.HasSuffix(err.Error(), ": "+cause.Error()) {
				t.Errorf("%v", err)
			}
		}
	})
}
