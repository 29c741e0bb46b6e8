package zklock_test

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// wantAll checks that all locks are held, with one node each, and gives them back.
func (s *stage) wantAll(t *testing.T, l *zklock.MultiLease) {
	t.Helper()
	must(t, l.Err())
	for i, one := range l.Leases() {
		testserver.WaitChildren(t, s.paths[i], 1) // a second node of ours is swept in the background
		if got, want := s.paths[i]+"/"+testserver.Children(t, s.paths[i])[0], one.Path(); got != want {
			t.Errorf("the lease is of %s, and the node is %s", want, got)
		}
	}
	must(t, l.Release(patient(t)))
	for _, dir := range s.paths {
		testserver.WaitChildren(t, dir, 0)
	}
}

// The reply to the transaction is lost, or the transaction itself, or both at the same place in turn.
func TestTogetherLostReply(t *testing.T) {
	for what, faults := range map[string]func(*zktest.Proxy){
		"the request": func(p *zktest.Proxy) { p.CutBefore(creating) },
		"the reply":   func(p *zktest.Proxy) { p.CutAfterCommit(creating) },
		"both, one after the other": func(p *zktest.Proxy) {
			p.CutBefore(creating)
			p.CutAfterCommit(creating)
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newStage(t, 3)
			faults(s.proxy)
			l, err := s.all.Acquire(patient(t))
			must(t, err)
			if n := s.count(zktest.OpSync); n < 1 || n > 2 {
				t.Errorf("%d syncs", n)
			}
			s.wantAll(t, l)
		})
	}
}

// The reply is lost, and one of the nodes is deleted before it is looked for. All others are given up, and
// the acquisition starts again.
func TestTogetherFoundInSome(t *testing.T) {
	for gone := range 3 {
		s := newStage(t, 3)
		s.proxy.CutAfterCommit(creating)
		sync := s.proxy.HoldRequest(zktest.Any(zktest.OpSync))
		got := make(chan *zklock.MultiLease, 1)
		locked := background(func() error {
			l, err := s.all.Acquire(patient(t))
			got <- l
			return err
		})
		receive(t, "the sync", sync.Hit())
		var first []string
		for _, dir := range s.paths {
			first = append(first, testserver.Children(t, dir)...)
		}
		testserver.Delete(t, s.paths[gone], first[gone])
		sync.Release()
		must(t, receive(t, "Acquire", locked))
		l := <-got
		for i, one := range l.Leases() {
			if one.Path() == s.paths[i]+"/"+first[i] {
				t.Errorf("lease %d has a node of the first transaction", i)
			}
		}
		s.wantAll(t, l)
	}
}

// If the transaction that gives the locks back fails, or if it or its reply is lost, each node is deleted by
// itself.
func TestTogetherReleaseFails(t *testing.T) {
	for what, fault := range map[string]func(t *testing.T, s *stage) (release func()){
		"the request is lost": func(_ *testing.T, s *stage) func() { s.proxy.CutBefore(deleting); return func() {} },
		"the reply is lost":   func(_ *testing.T, s *stage) func() { s.proxy.CutAfterCommit(deleting); return func() {} },
		"a node is gone": func(t *testing.T, s *stage) func() {
			f := s.proxy.HoldRequest(deleting)
			return func() {
				receive(t, "the transaction", f.Hit())
				testserver.Delete(t, s.paths[1], testserver.Children(t, s.paths[1])[0])
				f.Release()
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newStage(t, 3)
			must(t, s.all.Lock(patient(t)))
			release := fault(t, s)
			unlocked := background(func() error { return s.all.Unlock() })
			release()
			if err := receive(t, "Unlock", unlocked); err != nil {
				t.Errorf("Unlock: %v", err)
			}
			for _, dir := range s.paths {
				testserver.WaitChildren(t, dir, 0)
			}
			if n := s.proxy.Count(deleting); n != 1 {
				t.Errorf("%d transactions that delete nodes, want 1", n)
			}
			must(t, s.all.Lock(patient(t))) // nothing stays counted or claimed
			must(t, s.all.Unlock())
		})
	}
}

// The session expires at one of the steps. The acquisition starts again in the next session, and holds all
// locks in that.
func TestTogetherSessionLost(t *testing.T) {
	for what, hold := range map[string]func(*stage) *zktest.Fault{
		"before the transaction": func(s *stage) *zktest.Fault { return s.proxy.HoldRequest(creating) },
		"before the reply":       func(s *stage) *zktest.Fault { return s.proxy.HoldReply(creating) },
		"before a listing": func(s *stage) *zktest.Fault {
			return s.proxy.HoldRequest(zktest.On(zktest.OpGetChildren2, s.paths[1]))
		},
		"before the rest is given up": func(s *stage) *zktest.Fault { return s.proxy.HoldRequest(deleting) },
	} {
		t.Run(what, func(t *testing.T) {
			s := newStage(t, 4, session.WithTimeout(faultTimeout))
			holder := newMutex(t, connect(t), s.paths[1])
			must(t, holder.Lock(patient(t)))
			f := hold(s)
			got := make(chan *zklock.MultiLease, 1)
			locked := background(func() error {
				l, err := s.all.Acquire(patient(t))
				got <- l
				return err
			})
			receive(t, what, f.Hit())
			expire(t, s.proxy, s.m)
			f.Release()
			receive(t, "the wait", s.waits)
			pending(t, "Acquire", locked)
			must(t, holder.Unlock())
			must(t, receive(t, "Acquire", locked))
			s.wantAll(t, <-got)
		})
	}
}

// If the acquisition is cancelled at any of its steps, it returns at once and leaves nothing behind.
func TestTogetherCancelled(t *testing.T) {
	list := func(s *stage) zktest.Match { return zktest.On(zktest.OpGetChildren2, s.paths[1]) }
	watch := func(s *stage) zktest.Match { return zktest.On(zktest.OpGetData, s.paths[1]) }
	for what, hold := range map[string]func(*stage) *zktest.Fault{
		"before the transaction":      func(s *stage) *zktest.Fault { return s.proxy.HoldRequest(creating) },
		"before its reply":            func(s *stage) *zktest.Fault { return s.proxy.HoldReply(creating) },
		"before a listing":            func(s *stage) *zktest.Fault { return s.proxy.HoldRequest(list(s)) },
		"before a listing's reply":    func(s *stage) *zktest.Fault { return s.proxy.HoldReply(list(s)) },
		"before the rest is given up": func(s *stage) *zktest.Fault { return s.proxy.HoldRequest(deleting) },
		"before the rest is gone":     func(s *stage) *zktest.Fault { return s.proxy.HoldReply(deleting) },
		"before a watch is set":       func(s *stage) *zktest.Fault { return s.proxy.HoldRequest(watch(s)) },
		"while a lost reply is looked for": func(s *stage) *zktest.Fault {
			s.proxy.CutAfterCommit(creating)
			return s.proxy.HoldRequest(zktest.Any(zktest.OpSync))
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newStage(t, 4)
			holder := newMutex(t, connect(t), s.paths[1])
			must(t, holder.Lock(patient(t)))
			f := hold(s)
			ctx, cancel := context.WithCancel(patient(t))
			defer cancel()
			locked := background(func() error { return s.all.Lock(ctx) })
			receive(t, what, f.Hit())
			cancel()
			wantErr(t, "Lock", receive(t, "Lock", locked), context.Canceled)
			f.Release()
			must(t, holder.Unlock())
			for _, dir := range s.paths {
				testserver.WaitChildren(t, dir, 0)
			}
			must(t, s.all.Lock(patient(t)))
			must(t, s.all.Unlock())
		})
	}
}

// A node of a lock that was granted with the others is deleted while the first busy one is waited for. The
// acquisition starts again, so that it never holds with one of them missing.
func TestTogetherOneMissing(t *testing.T) {
	s := newStage(t, 3)
	holder := newMutex(t, connect(t), s.paths[2])
	must(t, holder.Lock(patient(t)))
	got := make(chan *zklock.MultiLease, 1)
	locked := background(func() error {
		l, err := s.all.Acquire(patient(t))
		got <- l
		return err
	})
	receive(t, "the wait", s.waits)
	testserver.Delete(t, s.paths[0], testserver.Children(t, s.paths[0])[0])
	receive(t, "the wait after that", s.waits)
	pending(t, "Acquire", locked)
	must(t, holder.Unlock())
	must(t, receive(t, "Acquire", locked))
	s.wantAll(t, <-got)
}
