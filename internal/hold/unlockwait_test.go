package hold_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// unlockable is what all locks have.
type unlockable interface {
	Lock(ctx context.Context) error
	Unlock() error
	Held() bool
	Do(ctx context.Context, f func(context.Context) error) error
}

// keyLock is a lock of a Keyed.
type keyLock struct{ *zklock.Keyed }

func (k keyLock) Lock(ctx context.Context) error { return k.Keyed.Lock(ctx, "key") }
func (k keyLock) Unlock() error                  { return k.Keyed.Unlock("key") }
func (k keyLock) Held() bool                     { return k.Keyed.Held("key") }
func (k keyLock) Do(ctx context.Context, f func(context.Context) error) error {
	return k.Keyed.Do(ctx, "key", f)
}

const waitPath = "/locks/x"

// everyKind makes a lock of each kind.
var everyKind = map[string]func(m *session.Manager) (unlockable, error){
	"mutex": func(m *session.Manager) (unlockable, error) { return zklock.New(m, waitPath) },
	"mutex with hand-over": func(m *session.Manager) (unlockable, error) {
		return zklock.New(m, waitPath, zklock.WithLocalHandover(3))
	},
	"writer": func(m *session.Manager) (unlockable, error) { return rwlock.New(m, waitPath) },
	"reader": func(m *session.Manager) (unlockable, error) {
		rw, err := rwlock.New(m, waitPath)
		if err != nil {
			return nil, err
		}
		return rw.Reader(), nil
	},
	"semaphore": func(m *session.Manager) (unlockable, error) { return semaphore.New(m, waitPath, 1) },
	"semaphore in Curator's layout": func(m *session.Manager) (unlockable, error) {
		return semaphore.New(m, waitPath, 1, semaphore.WithCuratorLayout())
	},
	"multi": func(m *session.Manager) (unlockable, error) {
		one, err := zklock.New(m, waitPath)
		if err != nil {
			return nil, err
		}
		two, err := semaphore.New(m, waitPath+"2", 1)
		if err != nil {
			return nil, err
		}
		three, err := zklock.New(m, waitPath+"3", zklock.WithLocalHandover(3))
		if err != nil {
			return nil, err
		}
		return zklock.Multi(one, two, three)
	},
	"keyed": func(m *session.Manager) (unlockable, error) {
		k, err := zklock.NewKeyed(m, "/locks")
		return keyLock{k}, err
	},
}

// ways to unlock.
var unlocks = map[string]func(ctx context.Context, l unlockable, before func()) func() error{
	"Unlock": func(ctx context.Context, l unlockable, before func()) func() error {
		if err := l.Lock(ctx); err != nil {
			panic(err)
		}
		before()
		return l.Unlock
	},
	"Do": func(ctx context.Context, l unlockable, before func()) func() error {
		done, held := make(chan error, 1), make(chan struct{})
		work := make(chan struct{})
		go func() {
			done <- l.Do(ctx, func(context.Context) error {
				close(held)
				<-work
				return nil
			})
		}()
		<-held
		before()
		return func() error {
			close(work)
			return <-done
		}
	},
}

// waiting is one Unlock, in virtual time.
type waiting struct {
	server *zktest.Server
	m      *session.Manager
	lock   unlockable
	log    *lockedBuffer
	told   *toldReleases
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// toldReleases is what the Release hook is told: how many releases have begun, and how those ended that have.
type toldReleases struct {
	mu    sync.Mutex
	begun int
	ended []error
}

func (r *toldReleases) hook(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun++
	return ctx, func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = append(r.ended, err)
	}
}

// left returns how many releases have not ended, and the errors of those that have.
func (r *toldReleases) left() (n int, errs []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.ended {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return r.begun - len(r.ended), errs
}

// eachUnlock runs f for each kind of lock and each way to unlock, with the lock held. begin is called just before the
// unlock.
func eachUnlock(t *testing.T, begin func(*waiting), f func(t *testing.T, w *waiting, unlock func() error)) {
	for kind, newLock := range everyKind {
		for how, unlockBy := range unlocks {
			t.Run(kind+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := &waiting{log: &lockedBuffer{}, told: &toldReleases{}}
					w.server = zktest.Start(t, zktest.ContainerCheck(24*time.Hour))
					m, err := session.Connect(t.Context(), "zookeeper:2181",
						session.WithDialer(w.server.Dialer()), session.WithTimeout(10*time.Second),
						session.WithLogger(slog.New(slog.NewTextHandler(w.log, nil))),
						session.WithTrace(session.Trace{Release: w.told.hook}))
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = m.Close() }()
					w.m = m
					if w.lock, err = newLock(m); err != nil {
						t.Fatal(err)
					}
					unlock := unlockBy(t.Context(), w.lock, func() {
						time.Sleep(time.Second)
						begin(w)
					})
					f(t, w, unlock)
				})
			})
		}
	}
}

// returns checks how long an unlock takes, and that it returns nil.
func returns(t *testing.T, want time.Duration, unlock func() error) {
	t.Helper()
	began := time.Now()
	if err := unlock(); err != nil {
		t.Errorf("the unlock returns %v", err)
	}
	if took := time.Since(began); took != want {
		t.Errorf("the unlock took %v, want %v", took, want)
	}
}

// settled checks that the servers have no node of the lock any more, in the same session, and that the log and the
// hook tell of it.
func (w *waiting) settled(t *testing.T, before int64) {
	t.Helper()
	time.Sleep(15 * time.Second)
	s, err := w.m.Session(t.Context())
	if err != nil || s.ID() != before {
		t.Fatalf("not in the same session: %v", err)
	}
	if n := w.nodes(t, s); n != 0 {
		t.Errorf("%d nodes are left", n)
	}
	if left, errs := w.told.left(); left != 0 || len(errs) != 0 {
		t.Errorf("the end of %d releases was not told; others ended with %v", left, errs)
	}
	if !strings.Contains(w.log.String(), "which Unlock did not wait for") {
		t.Errorf("the log has no line about the release:\n%s", w.log)
	}
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Error(err)
		}
	}
	must(w.lock.Lock(t.Context()))
	must(w.lock.Unlock())
}

// nodes counts the contenders in all directories.
func (w *waiting) nodes(t *testing.T, s *session.Session) (n int) {
	t.Helper()
	for _, dir := range []string{waitPath, waitPath + "2", waitPath + "3", waitPath + "/leases", waitPath + "/locks", "/locks/key"} {
		names, _, err := s.Children(t.Context(), dir)
		if err != nil {
			continue // there is no such directory
		}
		for _, name := range names {
			if strings.HasPrefix(name, "_c_") {
				n++
			}
		}
	}
	return n
}

func idOf(t *testing.T, m *session.Manager) int64 {
	t.Helper()
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.ID()
}

// An unlock whose delete is swallowed by the network returns nil after a second, and leaves nothing once the servers are
// back. The slot of the object is free long before.
func TestUnlockIntoABlackHole(t *testing.T) {
	var before int64
	for _, d := range []zktest.Direction{zktest.ToServer, zktest.ToClient} {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			eachUnlock(t, func(w *waiting) { w.server.Blackhole(d) }, func(t *testing.T, w *waiting, unlock func() error) {
				before = idOf(t, w.m)
				time.AfterFunc(500*time.Millisecond, func() {
					if w.lock.Held() {
						t.Error("held during the wait")
					}
				})
				returns(t, time.Second, unlock)
				w.server.Heal()
				w.settled(t, before)
			})
		})
	}
}

// Without a connection an unlock returns at once.
func TestUnlockWithoutAConnection(t *testing.T) {
	eachUnlock(t, func(w *waiting) {
		w.server.Refuse(true)
		w.server.Disconnect()
		synctest.Wait()
	}, func(t *testing.T, w *waiting, unlock func() error) {
		returns(t, 0, unlock)
		s, err := w.m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.server.Refuse(false)
		w.settled(t, s.ID())
	})
}

// A connection that breaks during the wait ends it. The next Lock, on the next connection, does not find the old node.
func TestUnlockWhileTheConnectionBreaks(t *testing.T) {
	eachUnlock(t, func(w *waiting) {
		w.server.Blackhole(zktest.ToServer)
		time.AfterFunc(300*time.Millisecond, func() {
			w.server.Refuse(true)
			w.server.Disconnect()
		})
	}, func(t *testing.T, w *waiting, unlock func() error) {
		before := idOf(t, w.m)
		returns(t, 300*time.Millisecond, unlock)
		w.server.Heal()
		w.server.Refuse(false)
		w.server.ResetRequests()
		if err := w.lock.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := w.server.Count(zktest.Any(zktest.OpGetData)); n != 0 { // a wait would set a watch
			t.Errorf("the next Lock has waited: %d watches", n)
		}
		if err := w.lock.Unlock(); err != nil {
			t.Error(err)
		}
		w.settled(t, before)
	})
}

// A session that is lost during the wait ends it, and that is no error of the unlock. The hook and the log are told.
func TestUnlockWhileTheSessionIsLost(t *testing.T) {
	eachUnlock(t, func(w *waiting) {
		w.server.Blackhole(zktest.ToServer)
		time.AfterFunc(300*time.Millisecond, func() { go w.m.Close() }) //nolint:errcheck // no server answers
	}, func(t *testing.T, w *waiting, unlock func() error) {
		began := time.Now()
		if err := unlock(); err != nil {
			t.Errorf("the unlock returns %v", err)
		}
		if took := time.Since(began); took < 300*time.Millisecond || took > time.Second {
			t.Errorf("the unlock took %v", took)
		}
		time.Sleep(10 * time.Second)
		if left, errs := w.told.left(); left != 0 || len(errs) == 0 {
			t.Errorf("the end of %d releases was not told; others ended with %v", left, errs)
		}
	})
}

// The end of a term waits for the servers as an Unlock does.
func TestEndOfATermWaits(t *testing.T) {
	for what, c := range map[string]struct {
		begin func(s *zktest.Server)
		want  time.Duration
	}{
		"black hole":    {func(s *zktest.Server) { s.Blackhole(zktest.ToServer) }, time.Second},
		"no connection": {func(s *zktest.Server) { s.Refuse(true); s.Disconnect(); synctest.Wait() }, 0},
		"a connection that breaks": {func(s *zktest.Server) {
			s.Blackhole(zktest.ToServer)
			time.AfterFunc(300*time.Millisecond, func() { s.Refuse(true); s.Disconnect() })
		}, 300 * time.Millisecond},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := zktest.Start(t)
				m, err := session.Connect(t.Context(), "zookeeper:2181", session.WithDialer(server.Dialer()),
					session.WithTimeout(10*time.Second), session.WithLogger(slog.New(slog.DiscardHandler)))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = m.Close() }()
				e, err := election.New(m, waitPath)
				if err != nil {
					t.Fatal(err)
				}
				failed, began := errors.New("the work has failed"), time.Time{}
				err = e.Run(t.Context(), func(context.Context) error {
					time.Sleep(time.Second)
					c.begin(server)
					began = time.Now()
					return failed
				})
				if took := time.Since(began); took != c.want || !errors.Is(err, failed) {
					t.Errorf("the end of the term took %v, want %v: %v", took, c.want, err)
				}
				server.Heal()
				server.Refuse(false)
				time.Sleep(15 * time.Second)
				s, err := m.Session(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if names, _, err := s.Children(t.Context(), waitPath); err != nil || len(names) != 0 {
					t.Errorf("%q are left: %v", names, err)
				}
			})
		})
	}
}
