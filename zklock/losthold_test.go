package zklock_test

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// slotted is a lock with a slot: one hold at a time.
type slotted interface {
	Lock(context.Context) error
	TryLock(context.Context) (bool, error)
	Unlock() error
	Held() bool
}

const lockPath = "/locks/one"

// slottedLocks makes the locks with a slot, at lockPath.
var slottedLocks = map[string]func(t *testing.T, m *session.Manager) slotted{
	"mutex": func(t *testing.T, m *session.Manager) slotted { return newMutex(t, m, lockPath) },
	"local": func(t *testing.T, m *session.Manager) slotted {
		return newMutex(t, m, lockPath, zklock.WithLocalHandover(5))
	},
	"writer": func(t *testing.T, m *session.Manager) slotted {
		rw, err := rwlock.New(m, lockPath)
		must(t, err)
		return rw
	},
	"multi": func(t *testing.T, m *session.Manager) slotted {
		return newMulti(t, newMutex(t, m, lockPath), newMutex(t, m, lockPath+"-second"))
	},
}

// losses are the ways to lose a lock.
var losses = map[string]func(*testing.T, lostHold){
	"session": func(t *testing.T, h lostHold) {
		s, err := h.m.Session(t.Context())
		must(t, err)
		must(t, h.server.Expire(t.Context(), s.ID()))
	},
	"node": func(t *testing.T, h lostHold) {
		first := slices.MinFunc(h.nodes(t), func(a, b string) int {
			nodeA, _ := queue.ParseNode(a)
			nodeB, _ := queue.ParseNode(b)
			return cmp.Compare(nodeA.Sequence, nodeB.Sequence)
		})
		must(t, h.server.DeleteNode(lockPath+"/"+first))
	},
}

// lostHold is a lock that one goroutine of a process has lost and not unlocked.
type lostHold struct {
	server *zktest.Server
	m      *session.Manager
	lock   slotted
	rival  slotted // the lock at lockPath, of another process

	early  <-chan error // result of a Lock that began before the loss
	cancel func()       // ends the context of that Lock
}

// nodes returns the nodes of all processes at lockPath.
func (h lostHold) nodes(t *testing.T) []string {
	t.Helper()
	s, err := h.m.Session(t.Context())
	must(t, err)
	names, _, err := s.Children(t.Context(), lockPath)
	must(t, err)
	return names
}

// inBubble runs f in virtual time, with a server of its own. connect makes a manager, which for locks is
// another process.
func inBubble(t *testing.T, f func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager)) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t, zktest.ContainerCheck(24*time.Hour))
		f(t, server, func(opts ...session.Option) *session.Manager {
			m, err := session.Connect(t.Context(), "zookeeper:2181", append([]session.Option{
				session.WithDialer(server.Dialer()), session.WithTimeout(10 * time.Second),
				session.WithLogger(slog.New(slog.DiscardHandler)),
			}, opts...)...)
			must(t, err)
			t.Cleanup(func() { _ = m.Close() })
			return m
		})
	})
}

// eachLostHold runs f for every lock with a slot and every way to lose it.
func eachLostHold(t *testing.T, f func(t *testing.T, h lostHold)) {
	for kind, newLock := range slottedLocks {
		for what, lose := range losses {
			t.Run(kind+"/"+what, func(t *testing.T) {
				inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
					h := lostHold{server: server, m: connect()}
					h.lock, h.rival = newLock(t, h.m), newLock(t, connect())
					if kind == "multi" { // its second lock may not be lost
						h.rival = newMutex(t, connect(), lockPath)
					}
					ctx, cancel := context.WithCancel(t.Context())
					h.cancel = cancel
					must(t, h.lock.Lock(t.Context()))
					h.early = background(func() error { return h.lock.Lock(ctx) })
					time.Sleep(time.Second) // it waits for its turn
					lose(t, h)
					time.Sleep(time.Minute) // by now it has got all that it gets after the loss
					if h.lock.Held() {
						t.Fatal("held after the loss")
					}
					f(t, h)
				})
			})
		}
	}
}

// A goroutine that has lost the lock and hangs keeps out the other goroutines of its process, but no other
// process.
func TestLostHoldKeepsOutNoProcess(t *testing.T) {
	eachLostHold(t, func(t *testing.T, h lostHold) {
		late := background(func() error { return h.lock.Lock(t.Context()) })
		for range 2 {
			soon, cancel := context.WithTimeout(t.Context(), time.Second)
			must(t, h.rival.Lock(soon))
			cancel()
			time.Sleep(time.Minute)
			if n := len(h.nodes(t)); n != 1 {
				t.Errorf("%d nodes while another process holds, want its own alone", n)
			}
			must(t, h.rival.Unlock())
		}
		pending(t, "the Lock that began before the loss", h.early)
		pending(t, "the Lock that began after the loss", late)
		wantErr(t, "Unlock", h.lock.Unlock(), session.ErrLost)
		for range 2 {
			synctest.Wait()
			select {
			case err := <-h.early:
				must(t, err)
			case err := <-late:
				must(t, err)
			default:
				t.Fatal("no goroutine got the lock after the Unlock of the lost hold")
			}
			if !h.lock.Held() {
				t.Error("not held after Lock")
			}
			must(t, h.lock.Unlock())
		}
		if n := len(h.nodes(t)); n != 0 {
			t.Errorf("%d nodes are left", n)
		}
	})
}

// Lock beside a lost hold ends with its context, and with its manager.
func TestLockBesideLostHoldEnds(t *testing.T) {
	eachLostHold(t, func(t *testing.T, h lostHold) {
		late := background(func() error { return h.lock.Lock(t.Context()) })
		time.Sleep(time.Minute)
		h.cancel()
		synctest.Wait()
		wantErr(t, "the cancelled Lock", receive(t, "the cancelled Lock", h.early), context.Canceled)
		pending(t, "the other Lock", late)
		must(t, h.m.Close())
		synctest.Wait()
		wantErr(t, "Lock when the manager is closed", receive(t, "the other Lock", late), session.ErrClosed)
		wantErr(t, "Lock after that", h.lock.Lock(t.Context()), session.ErrClosed)
		_, err := h.lock.TryLock(t.Context())
		wantErr(t, "TryLock after that", err, session.ErrClosed)
		wantErr(t, "Unlock", h.lock.Unlock(), session.ErrLost)
	})
}

// TryLock beside a lost hold finds the lock busy, and leaves nothing that the next call could find.
func TestTryLockBesideLostHold(t *testing.T) {
	eachLostHold(t, func(t *testing.T, h lostHold) {
		h.cancel()
		for range 20 {
			got, err := h.lock.TryLock(t.Context())
			if got || err != nil {
				t.Fatalf("TryLock beside a lost hold: %v, %v", got, err)
			}
			if n := len(h.nodes(t)); n != 0 {
				t.Fatalf("%d nodes left by a TryLock that failed", n)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := h.lock.TryLock(ended)
		wantErr(t, "TryLock with a context that has ended", err, context.Canceled)
		wantErr(t, "Unlock", h.lock.Unlock(), session.ErrLost)
		got, err := h.lock.TryLock(t.Context())
		if !got || err != nil {
			t.Errorf("TryLock of a free lock: %v, %v", got, err)
		}
		must(t, h.lock.Unlock())
	})
}
