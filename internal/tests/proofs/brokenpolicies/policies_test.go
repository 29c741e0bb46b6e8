package brokenpolicies

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// world is two clients of one server. The policies of one of them call the trap.
type world struct {
	*testing.T
	server      *zktest.Server
	trap        *trap
	hooks       tally
	ours, other *session.Manager
	paths       int

	// The fields below are of the present try.
	function     string
	way          way
	n            int
	path         string
	mine, theirs lock
	lease        *queue.Lease
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, server: zktest.Start(t), trap: new(trap)}
	// There is room for one node, so that a place that is counted and not given back is noticed.
	w.ours = testserver.Connect(t, w.server.ConnectString(), session.WithTrace(w.hooks.trace()), session.WithNodeLimits(1, 1<<20),
		session.WithLogger(slog.New(slog.DiscardHandler)))
	w.other = testserver.Connect(t, w.server.ConnectString())
	return w
}

func (w *world) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testserver.Patience)
	w.Cleanup(cancel)
	return ctx
}

// caller runs f as the caller of the lock, and returns when f has ended in any way. It recovers as net/http does.
func (w *world) caller(f func()) {
	w.Helper()
	w.trap.arm(w.function, w.way, w.n)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil && v != (errTrap{}) {
				panic(v)
			}
		}()
		f()
	}()
	select {
	case <-done:
	case <-time.After(testserver.Patience):
		w.Fatalf("%s, call %d: the call hangs", w.function, w.n)
	}
}

// acquire is an acquisition that the trap may strike.
func (w *world) acquire() {
	w.caller(func() {
		var err error
		w.lease, err = w.mine.Acquire(w.context())
		w.must(err)
	})
}

// step is one of the things that callers do with a lock.
type step struct {
	name string
	do   func(w *world)
}

var steps = []step{
	{"granted at once", (*world).acquire},
	{"tried", func(w *world) {
		w.caller(func() {
			var err error
			w.lease, err = w.mine.TryAcquire(w.context())
			w.must(err)
		})
	}},
	{"waiting", func(w *world) {
		l, err := w.theirs.Acquire(w.context())
		w.must(err)
		released, ended := make(chan error, 1), make(chan struct{})
		go func() { // releases when the caller waits, or has ended
			for w.contenders() < 2 {
				select {
				case <-ended:
				case <-time.After(time.Millisecond):
					continue
				}
				break
			}
			released <- l.Release(w.context())
		}()
		w.acquire()
		close(ended)
		w.must(<-released)
	}},
	{"reply lost", func(w *world) {
		w.server.CutAfterCommit(zktest.On(zktest.OpCreate, w.path+"/"))
		w.acquire()
	}},
}

// contenders counts the contenders of all processes.
func (w *world) contenders() int {
	all, err := w.theirs.Contenders(w.context())
	if err != nil {
		return 0
	}
	return len(all)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Errorf("%s, call %d: %v", w.function, w.n, err)
	}
}

// try does one step, in which one call of a policy panics or ends its goroutine, and checks that nothing
// is left. It reports whether there was such a call.
func (w *world) try(s step, kind func(*trap) *queue.Kind) bool {
	w.paths++
	w.path = fmt.Sprintf("/lock%d", w.paths)
	var err error
	w.mine, err = newLock(w.ours, w.path, kind(w.trap))
	w.must(err)
	w.theirs, err = newLock(w.other, w.path, kind(new(trap)))
	w.must(err)
	w.lease = nil
	s.do(w)
	struck := w.trap.disarm()
	if struck != (w.lease == nil) {
		w.Errorf("%s, call %d: struck: %v, and the lease is %v", w.function, w.n, struck, w.lease)
	}
	if w.trap.unconfigured.Load() {
		w.Errorf("%s, call %d: a policy was asked for without a configuration", w.function, w.n)
	}
	if w.lease != nil {
		w.must(w.lease.Release(w.context()))
	}
	w.free("others", w.theirs)
	w.free("its own process", w.mine)
	all, err := w.theirs.Contenders(w.context())
	w.must(err)
	if len(all) > 0 {
		w.Errorf("%s, call %d: left in the queue: %v", w.function, w.n, all)
	}
	zktest.Eventually(w, testserver.Patience, "the hooks are told of every end", func() bool { return w.hooks.open() == 0 })
	return struck && !w.Failed()
}

// free takes the lock and gives it back.
func (w *world) free(whose string, l lock) {
	w.Helper()
	ctx := w.context()
	what := fmt.Sprintf("%s, call %d: the lock is free for %s", w.function, w.n, whose)
	zktest.Eventually(w, testserver.Patience, what, func() bool {
		lease, err := l.Acquire(ctx)
		if errors.Is(err, session.ErrTooManyNodes) && ctx.Err() == nil { // a removal is under way
			return false
		}
		if err == nil {
			err = lease.Release(ctx)
		}
		if err != nil {
			w.Fatalf("%s, call %d: for %s the lock is not free: %v", w.function, w.n, whose, err)
		}
		return true
	})
}

// A policy that panics, or ends its goroutine, at any of its calls leaves no node, no counted place and no waiter.
func TestPolicies(t *testing.T) {
	for name, kind := range kinds {
		for _, s := range steps {
			for what, way := range ways {
				t.Run(name+", "+s.name+", "+what, func(t *testing.T) {
					w := newWorld(t)
					w.way = way
					calls := 0
					for _, w.function = range functions {
						for w.n = 1; w.try(s, kind); w.n++ {
							calls++
						}
					}
					if calls == 0 {
						t.Error("no call was struck")
					}
				})
			}
		}
	}
}
