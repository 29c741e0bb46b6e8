package hold_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// doing is what has a Do. do reports whether f was called.
type doing struct {
	do    func(ctx context.Context, f func(context.Context) error) (ran bool, err error)
	again bool  // a request before the grant is no error: another call of do begins, as a candidate campaigns again
	cause error // of the context of f
}

// revocables are all that have a Do.
func revocables() map[string]func(m *session.Manager) (doing, error) {
	all := make(map[string]func(m *session.Manager) (doing, error))
	for kind, newLock := range everyKind {
		all[kind] = func(m *session.Manager) (doing, error) {
			l, err := newLock(m)
			return doing{cause: queue.ErrRevoked, do: func(ctx context.Context, f func(context.Context) error) (ran bool, err error) {
				err = l.Do(ctx, func(ctx context.Context) error {
					ran = true
					return f(ctx)
				})
				return ran, err
			}}, err
		}
	}
	all["TryDo"] = func(m *session.Manager) (doing, error) {
		mx, err := zklock.New(m, waitPath)
		return doing{cause: queue.ErrRevoked, do: mx.TryDo}, err
	}
	all["kept place"] = func(m *session.Manager) (doing, error) {
		mx, err := zklock.New(m, waitPath, zklock.WithLazyRelease(time.Minute))
		return doing{cause: queue.ErrRevoked, do: func(ctx context.Context, f func(context.Context) error) (ran bool, err error) {
			err = mx.Do(ctx, func(ctx context.Context) error { ran = true; return f(ctx) })
			return ran, err
		}}, err
	}
	all["schedule"] = func(m *session.Manager) (doing, error) {
		j, err := schedule.New(m, waitPath)
		tick := time.Now()
		return doing{cause: queue.ErrRevoked, do: func(ctx context.Context, f func(context.Context) error) (bool, error) {
			tick = tick.Add(time.Second)
			return j.Run(ctx, tick, f)
		}}, err
	}
	all["election"] = func(m *session.Manager) (doing, error) {
		var term error
		e, err := election.New(m, waitPath, election.WithTermEnd(func(err error) error {
			term = err
			return errTermOver
		}))
		return doing{again: true, cause: election.ErrResigned, do: func(ctx context.Context, f func(context.Context) error) (ran bool, err error) {
			term = nil
			err = e.Run(ctx, func(ctx context.Context) error { ran = true; return f(ctx) })
			if errors.Is(err, errTermOver) {
				err = term
			}
			return ran, err
		}}, err
	}
	return all
}

var errTermOver = errors.New("the term is over")

// site is a server with the manager of a holder, and another one.
type site struct {
	ours, others *session.Manager
	way          *way // of ours
	server       *zktest.Server
}

// way is the way to the server. cut ends its connections, and there are no others before mend.
type way struct {
	dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	mu    sync.Mutex
	conns []net.Conn
	isCut bool
}

func (w *way) to(ctx context.Context, network, addr string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isCut {
		return nil, errors.New("no way")
	}
	c, err := w.dial(ctx, network, addr)
	if err == nil {
		w.conns = append(w.conns, c)
	}
	return c, err
}

func (w *way) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = true
	for _, c := range w.conns {
		_ = c.Close()
	}
}

func (w *way) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = false
}

func newSite(t *testing.T) *site {
	t.Helper()
	server := zktest.Start(t, zktest.ContainerCheck(24*time.Hour))
	open := func(w *way) *session.Manager {
		m, err := session.Connect(t.Context(), "zookeeper:2181", session.WithDialer(w.to),
			session.WithTimeout(10*time.Second), session.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	w := &way{dial: server.Dialer()}
	return &site{open(w), open(&way{dial: server.Dialer()}), w, server}
}

// nodes returns the nodes of contenders below /locks that the session of a manager owns.
func (s *site) nodes(t *testing.T, of *session.Manager) (nodes []string) {
	t.Helper()
	other, err := s.others.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var walk func(dir string)
	walk = func(dir string) {
		names, _, err := other.Children(t.Context(), dir)
		if err != nil {
			return
		}
		for _, name := range names {
			node := path.Join(dir, name)
			_, stat, err := other.Get(t.Context(), node)
			if err == nil && stat.EphemeralOwner == idOf(t, of) && strings.Contains(name, "_c_") {
				nodes = append(nodes, node)
			}
			walk(node)
		}
	}
	walk("/locks")
	return nodes
}

// revoke asks for the nodes of our session.
func (s *site) revoke(t *testing.T) {
	t.Helper()
	for _, node := range s.nodes(t, s.ours) {
		if err := zklock.Revoke(t.Context(), s.others, node); err != nil {
			t.Error(err)
		}
	}
}

func eachRevocable(t *testing.T, f func(t *testing.T, kind string, s *site, d doing)) {
	for kind, newDoing := range revocables() {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				d, err := newDoing(s.ours)
				if err != nil {
					t.Fatal(err)
				}
				f(t, kind, s, d)
			})
		})
	}
}

// A request to give the lock up ends the context of a Do, with its cause. The lock stays held until the function
// returns. Then an error of the function matches the request, and nil stays nil. The place is not kept, and the next Do
// hears of nothing.
func TestRevokeWhileDoing(t *testing.T) {
	for _, fails := range []bool{true, false} {
		eachRevocable(t, func(t *testing.T, kind string, s *site, d doing) {
			ran, err := d.do(t.Context(), func(ctx context.Context) error {
				time.Sleep(10 * time.Millisecond) // the watch is set
				if ctx.Err() != nil {
					t.Error("the context ends without a request")
				}
				s.revoke(t)
				within(t, "the end of the context", ctx.Done())
				if cause := context.Cause(ctx); !errors.Is(cause, d.cause) {
					t.Errorf("the cause is %v", cause)
				}
				time.Sleep(time.Second)
				if len(s.nodes(t, s.ours)) == 0 {
					t.Error("the lock is not held any more")
				}
				if l, ok := queue.LeaseFrom(ctx); ok && (l.Err() != nil || !isClosed(l.Revoked())) {
					t.Errorf("the lease has ended: %v; or is not told", l.Err())
				}
				if fails {
					return ctx.Err()
				}
				return nil
			})
			switch {
			case !ran:
				t.Fatal("the function was not called")
			case fails && (!errors.Is(err, d.cause) || errors.Is(err, context.Canceled)):
				t.Errorf("Do returns %v", err)
			case !fails && err != nil && !d.again: // the term of an election has ended by a resignation
				t.Errorf("Do returns %v", err)
			}
			if left := s.nodes(t, s.ours); len(left) != 0 {
				t.Errorf("%q are left", left)
			}
			ran, err = d.do(t.Context(), func(ctx context.Context) error {
				time.Sleep(time.Second)
				return context.Cause(ctx)
			})
			if !ran || err != nil {
				t.Errorf("the next Do: %v, %v", ran, err)
			}
		})
	}
}

// If the request came before the grant, Do returns it and does not call the function.
func TestRevokeBeforeDo(t *testing.T) {
	eachRevocable(t, func(t *testing.T, kind string, s *site, d doing) {
		if kind == "TryDo" {
			return // it does not wait
		}
		var release func()
		if kind == "reader" {
			rw, err := rwlock.New(s.others, waitPath)
			if err != nil {
				t.Fatal(err)
			}
			if err := rw.Lock(t.Context()); err != nil {
				t.Fatal(err)
			}
			release = func() { _ = rw.Unlock() }
		} else {
			d, err := revocables()[kind](s.others)
			if err != nil {
				t.Fatal(err)
			}
			held, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
			go func() {
				defer close(left)
				_, _ = d.do(t.Context(), func(context.Context) error {
					close(held)
					<-leave
					return errors.New("in vain")
				})
			}()
			<-held
			release = func() { close(leave); <-left }
		}
		type result struct {
			ran bool
			err error
		}
		done := make(chan result, 1)
		go func() {
			ran, err := d.do(t.Context(), func(ctx context.Context) error { return context.Cause(ctx) })
			done <- result{ran, err}
		}()
		time.Sleep(time.Second)
		s.revoke(t)
		time.Sleep(time.Second)
		release()
		got := <-done
		switch {
		case d.again: // it has campaigned again
			if !got.ran || got.err != nil {
				t.Errorf("%v, %v", got.ran, got.err)
			}
		case got.ran || !errors.Is(got.err, queue.ErrRevoked):
			t.Errorf("called %v, and returns %v", got.ran, got.err)
		}
		if left := s.nodes(t, s.ours); len(left) != 0 {
			t.Errorf("%q are left", left)
		}
	})
}

// A request that came just before the grant is heard at the grant too: the waiter learns of both in one moment, by events or
// when it is connected again.
func TestRevokeJustBeforeDo(t *testing.T) {
	for _, disconnected := range []bool{false, true} {
		eachRevocable(t, func(t *testing.T, kind string, s *site, d doing) {
			switch kind {
			case "TryDo":
				return // it does not wait
			case "reader":
				kind = "writer" // which holds first
			}
			first, err := revocables()[kind](s.others)
			if err != nil {
				t.Fatal(err)
			}
			held, left := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(left)
				_, _ = first.do(t.Context(), func(ctx context.Context) error {
					close(held)
					<-ctx.Done()
					return errors.New("in vain")
				})
			}()
			<-held
			var calls int
			over := make(chan error, 1)
			go func() {
				_, err := d.do(t.Context(), func(ctx context.Context) error {
					calls++
					time.Sleep(time.Second)
					return context.Cause(ctx)
				})
				over <- err
			}()
			time.Sleep(time.Second)
			if disconnected {
				s.way.cut()
			}
			s.revokeAndDelete(t)
			s.way.mend()
			switch err := <-over; {
			case d.again: // it has campaigned again
				if calls != 1 || err != nil {
					t.Errorf("%d calls; %v", calls, err)
				}
			case calls != 0 || !errors.Is(err, queue.ErrRevoked):
				t.Errorf("%d calls; it returns %v", calls, err)
			}
			<-left
		})
	}
}

// A place that was asked for is neither kept nor handed over from the moment on at which the process learns that its node
// has changed, and not only once it has read what the node says.
func TestRevokedPlaceIsNotShared(t *testing.T) {
	for how, opt := range map[string]zklock.Option{"kept": zklock.WithLazyRelease(time.Minute), "handed over": zklock.WithLocalHandover(3)} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				mx, err := zklock.New(s.ours, waitPath, opt)
				if err != nil {
					t.Fatal(err)
				}
				if err := mx.Lock(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				unlock := func() {
					if err := mx.Unlock(); err != nil {
						t.Error(err)
					}
				}
				if how == "kept" {
					unlock()
				}
				next := make(chan string, 1)
				do := func() {
					err := mx.Do(t.Context(), func(ctx context.Context) error {
						l, _ := queue.LeaseFrom(ctx)
						next <- l.Path()
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
				if how == "handed over" {
					go do()
					time.Sleep(time.Second)
				}
				asked := s.nodes(t, s.ours)
				read := s.server.HoldRequest(zktest.On(zktest.OpGetData, asked[0]))
				other, err := s.others.Session(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := other.Set(t.Context(), asked[0], []byte(queue.RevokeMessage), -1); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if how == "kept" {
					go do()
				} else {
					go unlock()
				}
				time.Sleep(time.Second)
				read.Release()
				if node := <-next; node == asked[0] {
					t.Error("the place was used again")
				}
			})
		})
	}
}

// revokeAndDelete asks for our nodes, and deletes those of the others, in one transaction.
func (s *site) revokeAndDelete(t *testing.T) {
	t.Helper()
	var ops []any
	for _, node := range s.nodes(t, s.ours) {
		ops = append(ops, &zk.SetDataRequest{Path: node, Data: []byte(queue.RevokeMessage), Version: -1})
	}
	for _, node := range s.nodes(t, s.others) {
		ops = append(ops, &zk.DeleteRequest{Path: node, Version: -1})
	}
	other, err := s.others.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Multi(t.Context(), ops...); err != nil {
		t.Fatal(err)
	}
}

// With Lock and Acquire, a request only tells. The context of the lease goes on.
func TestRevokeOnlyTells(t *testing.T) {
	for kind, newLock := range everyKind {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				l, err := newLock(s.ours)
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Lock(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Millisecond)
				s.revoke(t)
				time.Sleep(time.Second)
				if !l.Held() {
					t.Error("not held after a request")
				}
				if err := l.Unlock(); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
				switch l := l.(type) {
				case interface {
					Acquire(context.Context) (*queue.Lease, error)
				}:
					lease, err := l.Acquire(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					tells(t, s, lease)
				case *zklock.MultiLock:
					lease, err := l.Acquire(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					tells(t, s, lease)
				}
				if left := s.nodes(t, s.ours); len(left) != 0 {
					t.Errorf("%q are left", left)
				}
			})
		})
	}
}

type anyLease interface {
	Revoked() <-chan struct{}
	Err() error
	Context(context.Context) (context.Context, context.CancelFunc)
	Release(context.Context) error
}

func tells(t *testing.T, s *site, lease anyLease) {
	t.Helper()
	ctx, cancel := lease.Context(t.Context())
	defer cancel()
	time.Sleep(10 * time.Millisecond)
	if isClosed(lease.Revoked()) {
		t.Error("told without a request")
	}
	if all := s.nodes(t, s.ours); len(all) > 1 { // the last of a Multi
		if err := zklock.Revoke(t.Context(), s.others, all[len(all)-1]); err != nil {
			t.Error(err)
		}
	} else {
		s.revoke(t)
	}
	within(t, "the request", lease.Revoked())
	if lease.Err() != nil || ctx.Err() != nil {
		t.Errorf("the lease: %v; its context: %v", lease.Err(), ctx.Err())
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func within(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(time.Minute):
		t.Errorf("%s does not come", what)
	}
}
