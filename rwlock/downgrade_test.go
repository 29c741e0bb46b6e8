package rwlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A write holder that takes the read lock and unlocks the write lock goes on reading, while a writer behind it goes
// on waiting. Readers that came before that writer are let in. While it has both, it has two nodes of one sequence, and
// either can be given up first.
func TestDowngrade(t *testing.T) {
	for name, downgrade := range map[string]func(owner context.Context, rw *rwlock.RWMutex) error{
		"RLock":    func(owner context.Context, rw *rwlock.RWMutex) error { return rw.RLock(owner) },
		"TryRLock": func(owner context.Context, rw *rwlock.RWMutex) error { _, err := rw.TryRLock(owner); return err },
		"re-entered": func(owner context.Context, rw *rwlock.RWMutex) error { // an owner of both locks may write
			return errors.Join(rw.RLock(owner), rw.RLock(owner), rw.Lock(owner), rw.Unlock(), rw.RUnlock())
		},
		"within Do": func(owner context.Context, rw *rwlock.RWMutex) error { return rw.Do(owner, rw.RLock) },
	} {
		run(t, func(w world) {
			rw, readers, writer := w.lock(), w.lock(), w.lock()
			owner := queue.WithOwner(w.Context())
			w.Must(rw.Lock(owner))
			first := w.Nodes(dir)[0]
			one, two := w.begin(readers.RLock), w.begin(readers.RLock)
			written := w.begin(writer.Lock)
			w.Must(downgrade(owner, rw))
			w.held(rw, true, true)
			w.picture("W* R* R R W", "R* W* R R W")
			w.Must(rw.Unlock())
			w.Must(errors.Join(one.Err(), two.Err()))
			w.picture("R* R* R* W")
			if now := w.Nodes(dir)[0]; now[len(now)-10:] != first[len(first)-10:] {
				t.Errorf("%s: the reader has %s, want the number of %s", name, now, first)
			}
			w.held(rw, false, true)
			w.Must(errors.Join(readers.RUnlock(), readers.RUnlock()))
			w.try("TryLock of another", w.lock().TryLock, false)
			w.picture("R* W")
			written.Waits("one reads")
			w.Must(rw.RUnlock())
			w.Must(written.Err())
			w.Must(writer.Unlock())

			w.Must(errors.Join(rw.Lock(owner), rw.RLock(owner), rw.RUnlock()))
			w.picture("W*")
			w.Must(rw.Unlock())
			w.picture("")
		})
	}
}

// Curator 5.5 creates the node that takes the writer's place itself: it has the write node's sequence. Contenders of this
// package behind it wait until that node is gone.
func TestCuratorDowngrades(t *testing.T) {
	run(t, func(w world) {
		downgrades := func() (write, read string) {
			write = w.Forge(dir, queue.PrefixWrite)
			return write, queue.PrefixRead + write[len(write)-10:]
		}
		writer, reader := w.lock(), w.lock()
		write, read := downgrades()
		written, behind := w.begin(writer.Lock), w.begin(reader.RLock)
		read = w.Forge(dir, read)
		w.picture("W* R* W R", "R* W* W R")
		w.Remove(write)
		w.picture("R* W R")
		written.Waits("Curator reads")
		behind.Waits("a writer is ahead")
		w.Remove(read)
		w.Must(written.Err())
		behind.Waits("a writer holds")
		w.Must(writer.Unlock())
		w.Must(behind.Err())
		w.Must(reader.RUnlock())

		write, read = downgrades() // a reader directly behind gets the lock beside the remaining reader
		behind = w.begin(reader.RLock)
		w.Forge(dir, read)
		w.Remove(write)
		w.Must(behind.Err())
		w.picture("R* R*")
	})
}

// An owner takes the read lock in the place of its write lock. If the write lock is lost, known or not, there is no
// such place.
func TestDowngradeOfLostLock(t *testing.T) {
	for name, lose := range map[string]func(w world, m *session.Manager){
		"session expired": func(w world, m *session.Manager) { w.Lose(m) },
		"node deleted":    func(w world, _ *session.Manager) { w.Remove(w.Nodes(dir)[0]) },
		"node deleted on the way": func(w world, m *session.Manager) {
			node := w.Nodes(dir)[0]
			hold := w.HoldRequest(w.of(m, zktest.Any(zktest.OpGetChildren2)))
			go func() {
				<-hold.Hit()
				w.Want("the deletion", w.DeleteNode(node), nil)
				hold.Release()
			}()
		},
	} {
		run(t, func(w world) {
			m := w.Connect()
			rw, owner := w.on(m), queue.WithOwner(w.Context())
			w.Must(rw.Lock(owner))
			lose(w, m)
			w.Want(name+": RLock", rw.RLock(owner), session.ErrLost)
			w.Want(name+": TryRLock", expect.Err(rw.TryRLock(owner)), session.ErrLost)
			w.Want(name+": Reader.Do", rw.Reader().Do(owner, func(context.Context) error {
				t.Errorf("%s: called", name)
				return nil
			}), session.ErrLost)
			w.held(rw, false, false)
			w.Want(name+": RUnlock", rw.RUnlock(), rwlock.ErrNotHeld)
			w.Want(name+": Unlock", rw.Unlock(), session.ErrLost)
			w.picture("")
			w.Must(rw.RLock(owner)) // it can lock again
		})
	}
}

// Another goroutine of the owner unlocks the write lock while the read lock is taken in its place. Then that RLock
// waits in the queue like any other.
func TestUnlockDuringDowngrade(t *testing.T) {
	for what, early := range map[string]bool{"before anything is sent": true, "before its node is looked for": false} {
		run(t, func(w world) {
			var rw *rwlock.RWMutex
			var unlocks bool
			m := w.Connect(session.WithTrace(session.Trace{
				Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
					if a.Kind == "read" && unlocks {
						unlocks = false
						w.Want("Unlock", rw.Unlock(), nil)
					}
					return ctx, nil
				},
			}))
			rw = w.on(m)
			owner := queue.WithOwner(w.Context())
			w.Must(rw.Lock(owner))
			node, writer := w.Nodes(dir)[0], w.lock()
			written := w.begin(writer.Lock)
			list := (*zktest.Fault)(nil)
			if unlocks = early; !early {
				list = w.HoldRequest(w.of(m, zktest.Any(zktest.OpGetChildren2)))
			}
			read := w.Go(func() error { return rw.RLock(owner) })
			if !early {
				w.Await(list.Hit())
				unlock := w.Go(rw.Unlock) // its delete is held up, too
				w.Remove(node)
				list.Release()
				w.Must(unlock.Err())
			}
			w.Must(written.Err())
			w.picture("W* R")
			w.Must(writer.Unlock())
			w.Want(what, read.Err(), nil)
			w.Must(rw.RUnlock())
			w.picture("")
		})
	}
}

// A downgrade that is cancelled returns at once and leaves nothing behind. The write lock stays held.
func TestCancelDowngrade(t *testing.T) {
	run(t, func(w world) {
		rw := w.lock()
		owner, cancel := context.WithCancel(queue.WithOwner(w.Context()))
		defer cancel()
		w.Must(rw.Lock(owner))
		hold := w.HoldRequest(zktest.On(zktest.OpCreate, dir))
		read := w.Go(func() error { return rw.RLock(owner) })
		w.Await(hold.Hit())
		cancel()
		w.Want("RLock", read.Err(), context.Canceled)
		hold.Release()
		w.held(rw, true, false)
		w.picture("W*")
		w.Must(rw.Unlock())
	})
}

// The turn of a writer that becomes a reader is not handed over, although a writer of the same process waits for it: that one
// comes after the reader. This holds from the moment at which the downgrade begins. Nor is the turn kept.
func TestDowngradeHandsNothingOver(t *testing.T) {
	for _, meanwhile := range []bool{false, true} { // the Unlock
		run(t, func(w world) {
			rw, owner := w.lock(lazy), queue.WithOwner(w.Context())
			w.Must(rw.Lock(owner))
			next := w.begin(rw.Lock)
			w.Pass(time.Second) // the writer's node has its own watch, and its token is known
			create := w.HoldRequest(zktest.On(zktest.OpCreate, dir))
			read := w.Go(func() error { return rw.RLock(owner) })
			w.Await(create.Hit())
			unlock := func() error { return nil }
			if meanwhile {
				unlock = w.Go(rw.Unlock).Err
			}
			create.Release()
			w.Must(read.Err())
			if !meanwhile {
				unlock = rw.Unlock
			}
			w.Must(unlock())
			next.Waits("one reads")
			w.held(rw, false, true)
			w.Must(rw.RUnlock())
			w.Must(next.Err())
			w.Must(rw.Unlock())

			w.Pass(time.Minute) // until nothing is kept
			w.Must(errors.Join(rw.Lock(owner), rw.RLock(owner), rw.Unlock(), rw.RUnlock()))
			w.picture("")
		})
	}
}

// A read holder that wants the write lock is refused at once, and nothing is sent. The read lock stays held, and other
// readers go on. After it has unlocked the read lock, it gets the write lock.
func TestUpgradeRefused(t *testing.T) {
	do := func(lock, unlock func() error) func(func() error) error {
		return func(f func() error) error { return all(lock, f, unlock) }
	}
	for what, hold := range map[string]func(ctx context.Context, rw *rwlock.RWMutex) func(func() error) error{
		"RLock": func(ctx context.Context, rw *rwlock.RWMutex) func(func() error) error {
			return do(func() error { return rw.RLock(ctx) }, rw.RUnlock)
		},
		"TryRLock": func(ctx context.Context, rw *rwlock.RWMutex) func(func() error) error {
			return do(func() error { _, err := rw.TryRLock(ctx); return err }, rw.RUnlock)
		},
		"Reader.Do": func(ctx context.Context, rw *rwlock.RWMutex) func(func() error) error {
			return func(f func() error) error { return rw.Reader().Do(ctx, func(context.Context) error { return f() }) }
		},
		"a downgrade": func(ctx context.Context, rw *rwlock.RWMutex) func(func() error) error {
			return do(func() error { return errors.Join(rw.Lock(ctx), rw.RLock(ctx), rw.Unlock()) }, rw.RUnlock)
		},
	} {
		run(t, func(w world) {
			m, another := w.Connect(), w.lock()
			rw, owner := w.on(m), queue.WithOwner(w.Context())
			w.Must(hold(owner, rw)(func() error {
				w.Must(another.RLock(w.Context()))
				w.Pass(time.Second) // they watch their nodes by now
				w.ResetRequests()
				w.refused(owner, rw, rwlock.ErrUpgrade)
				ended, cancel := context.WithCancel(owner)
				cancel()
				w.refused(ended, rw, context.Canceled)
				expect.Requests(t, what, w.Server, w.of(m, anything), 0)
				w.picture("R* R*")
				w.held(rw, false, true)
				return another.RUnlock()
			}))
			w.Must(errors.Join(rw.Lock(owner), rw.Unlock()))
			w.picture("")
		})
	}
}

// While a writer that has lost the lock hangs, a reader that wants to write still gets ErrUpgrade at once. Otherwise it
// would wait with its read lock.
func TestUpgradeBesideLostWriter(t *testing.T) {
	run(t, func(w world) {
		rw, owner := w.lock(), queue.WithOwner(w.Context())
		w.Must(rw.Lock(w.Context()))
		w.Pass(time.Second)
		w.Remove(w.Nodes(dir)[0])
		w.Must(rw.RLock(owner))
		w.refused(owner, rw, rwlock.ErrUpgrade)
		w.Must(rw.RUnlock())
		w.Want("Unlock", rw.Unlock(), session.ErrLost)
	})
}

// unlocker is the context of an owner. It unlocks something when the owner is looked up.
type unlocker struct {
	context.Context
	unlock func()
}

func (u *unlocker) Value(key any) any {
	v := u.Context.Value(key)
	if _, ok := v.(*queue.Owner); ok && u.unlock != nil {
		u.unlock()
		u.unlock = nil
	}
	return v
}

// Another goroutine of the owner unlocks the write lock while Lock begins, which would have entered it again. The owner still
// holds the read lock then, and Lock does not wait for that.
func TestUpgradeRefusedAfterUnlock(t *testing.T) {
	run(t, func(w world) {
		rw, owner := w.lock(), queue.WithOwner(w.Context())
		w.Must(errors.Join(rw.Lock(owner), rw.RLock(owner)))
		w.Want("Lock", rw.Lock(&unlocker{owner, func() { w.Must(rw.Unlock()) }}), rwlock.ErrUpgrade)
		w.held(rw, false, true)
		w.Must(rw.RUnlock())
	})
}

// An owner of both locks that loses both is told of both. If only the write lock's node is gone, the read lock stays, and
// keeps writers out.
func TestBothLost(t *testing.T) {
	run(t, func(w world) {
		m, another := w.Connect(), w.lock()
		rw, owner := w.on(m), queue.WithOwner(w.Context())
		w.Must(errors.Join(rw.Lock(owner), rw.RLock(owner)))
		w.Lose(m)
		w.Want("Unlock", rw.Unlock(), session.ErrLost)
		w.Want("Lock", rw.Lock(owner), session.ErrLost) // it still has a lost read lock
		w.Want("RUnlock", rw.RUnlock(), session.ErrLost)

		w.Must(errors.Join(rw.Lock(owner), rw.RLock(owner)))
		w.Pass(time.Second)
		w.Remove(w.nodeOf(queue.PrefixWrite))
		w.Want("Unlock", rw.Unlock(), session.ErrLost)
		w.try("TryLock of another", another.TryLock, false)
		w.held(rw, false, true)
		w.Must(rw.RUnlock())
		w.Must(another.Lock(w.Context()))
	})
}

// Only the owner of the write lock reads beside it: another one waits, and so does the owner itself through another RWMutex, or
// with Acquire, which does not look at owners.
func TestOthersWaitForOwner(t *testing.T) {
	run(t, func(w world) {
		m := w.Connect()
		rw, owner := w.on(m), queue.WithOwner(w.Context())
		for what, get := range map[string]func() error{
			"another owner":   func() error { return errors.Join(rw.RLock(queue.WithOwner(owner)), rw.RUnlock()) },
			"another RWMutex": func() error { return w.on(m).Reader().Do(owner, nothing) },
			"Acquire": func() error {
				l, err := rw.Reader().Acquire(owner)
				return errors.Join(err, l.Release(owner))
			},
		} {
			w.Must(rw.Lock(owner))
			entered := w.Go(get)
			w.picture("W* R")
			entered.Waits(what + " is not the owner")
			w.Must(errors.Join(rw.Unlock(), entered.Err()))
			w.Want("one Unlock more", rw.Unlock(), rwlock.ErrNotHeld)
		}
	})
}

// Goroutines of one owner lock at the same time. Each call gets the lock or ErrUpgrade, and each hold can be given back.
func TestGoroutinesOfOneOwner(t *testing.T) {
	run(t, func(w world) {
		rw, owner := w.lock(), queue.WithOwner(w.Context())
		write := func() error {
			err := rw.Lock(owner)
			if errors.Is(err, rwlock.ErrUpgrade) {
				return nil // another one reads
			}
			return errors.Join(err, rw.RLock(owner), rw.Unlock(), rw.RUnlock())
		}
		read := func() error { return errors.Join(rw.RLock(owner), rw.RUnlock()) }
		var calls []func() error
		for _, call := range []func() error{write, read, write, read, write, read, write, read} {
			calls = append(calls, w.Go(func() error { return all(slices.Repeat([]func() error{call}, 25)...) }).Err)
		}
		w.Must(all(calls...))
		w.Want("Unlock", rw.Unlock(), rwlock.ErrNotHeld)
		w.Want("RUnlock", rw.RUnlock(), rwlock.ErrNotHeld)
		w.picture("")
	})
}

// RUnlock gives back a hold without an owner before an owner's hold, so that the owner's node stays, and never the lease of an
// Acquire.
func TestRUnlockLeavesOwners(t *testing.T) {
	run(t, func(w world) {
		rw, owner := w.lock(), queue.WithOwner(w.Context())
		w.Must(rw.RLock(owner))
		first := w.Nodes(dir)
		w.Must(errors.Join(rw.RLock(w.Context()), rw.RUnlock()))
		if left := w.Nodes(dir); !slices.Equal(left, first) {
			t.Errorf("left: %q; want the owner's, %q", left, first)
		}
		lease, err := rw.Reader().TryAcquire(w.Context())
		w.Must(err)
		w.Must(rw.RUnlock())
		w.Must(lease.Err())
	})
}
