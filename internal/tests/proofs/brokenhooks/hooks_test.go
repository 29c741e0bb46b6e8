package brokenhooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// world is two clients of one server. The hooks of one of them call the trap.
type world struct {
	*testing.T
	server      *zktest.Server
	trap        *trap
	before      tally // of hooks that are called before those of the trap
	behind      tally // and after them
	ours, other *session.Manager
	paths       int

	// The fields below are of the present try.
	hook          string
	way           way
	n             int
	path          string
	err           error // of the call that the hook observes, or the policy decides
	mine, theirs  lock
	neighbour     chan result // of a second acquisition in the same process; nil: there is none
	lease         *queue.Lease
	withNeighbour bool
}

type result struct {
	lease *queue.Lease
	err   error
}

// errEnded stands for an acquisition that the trap has struck.
var errEnded = errors.New("ended by a hook")

func newWorld(t *testing.T, withNeighbour bool) *world {
	w := &world{T: t, server: zktest.Start(t), trap: new(trap), withNeighbour: withNeighbour}
	// One node, so that a place that is counted and not given back is noticed. A neighbour may need
	// one more.
	most := 1
	if withNeighbour {
		most = 2
	}
	w.ours = testserver.Connect(t, w.server.ConnectString(), session.WithTrace(w.before.trace()),
		session.WithTrace(w.trap.trace()), session.WithTrace(w.behind.trace()), session.WithMaxNodes(most),
		session.WithLogger(slog.New(slog.DiscardHandler)),
		session.WithRetry(func() backoff.BackOff { return backoff.NewConstantBackOff(time.Millisecond) }))
	w.other = testserver.Connect(t, w.server.ConnectString())
	return w
}

func (w *world) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testserver.Patience)
	w.Cleanup(cancel)
	return ctx
}

// caller runs f as the caller of the lock, and returns when f has ended in any way.
func (w *world) caller(f func()) {
	w.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.guarded(f)
	}()
	select {
	case <-done:
	case <-time.After(testserver.Patience):
		w.Fatalf("%s, call %d: the call hangs", w.hook, w.n)
	}
}

// guarded runs f as net/http runs a handler.
func (w *world) guarded(f func()) {
	defer func() {
		if v := recover(); v != nil && v != (errTrap{}) {
			panic(v)
		}
	}()
	w.trap.here()
	f()
}

// acquire is an acquisition that the trap may strike.
func (w *world) acquire() {
	w.trap.arm(w.hook, w.way, w.n)
	w.caller(func() { w.lease, w.err = w.mine.Acquire(w.context()) })
}

// step is one of the things that callers do with a lock.
type step struct {
	name string
	do   func(w *world)
}

var steps = []step{
	{"granted at once", (*world).acquire},
	{"tried", func(w *world) {
		w.trap.arm(w.hook, w.way, w.n)
		w.caller(func() { w.lease, w.err = w.mine.TryAcquire(w.context()) })
	}},
	{"token", func(w *world) {
		var err error
		w.lease, err = w.mine.Acquire(w.context())
		w.must(err)
		w.trap.arm(w.hook, w.way, w.n)
		w.caller(func() {
			if _, err := w.lease.Token(w.context()); err != nil {
				w.Errorf("%s, call %d: %v", w.hook, w.n, err)
			}
		})
	}},
	{"waiting", func(w *world) {
		l, err := w.theirs.Acquire(w.context())
		w.must(err)
		released := make(chan error, 1)
		w.trap.arm(w.hook, w.way, w.n)
		ended := make(chan struct{})
		go func() {
			// Until the caller waits, or has ended.
			for w.contenders() < 2 {
				select {
				case <-ended:
				case <-time.After(time.Millisecond):
					continue
				}
				break
			}
			w.neighbours()
			released <- l.Release(w.context())
		}()
		w.caller(func() { defer close(ended); w.lease, w.err = w.mine.Acquire(w.context()) })
		w.must(<-released)
	}},
	{"release", func(w *world) {
		var err error
		w.lease, err = w.mine.Acquire(w.context())
		w.must(err)
		w.neighbours()
		w.trap.arm(w.hook, w.way, w.n)
		w.caller(func() { w.err = w.lease.Release(w.context()) })
	}},
	{"lost", func(w *world) {
		var err error
		w.lease, err = w.mine.Acquire(w.context())
		w.must(err)
		w.neighbours()
		s, err := w.ours.Session(w.context())
		w.must(err)
		w.trap.arm(w.hook, w.way, w.n)
		w.must(w.server.Expire(w.context(), s.ID()))
		w.caller(func() {
			<-s.Done()
			_ = w.lease.Release(w.context())
		})
	}},
	{"reply lost", func(w *world) {
		w.server.CutAfterCommit(zktest.On(zktest.OpCreate, w.path+"/"))
		w.acquire()
	}},
}

// neighbours begins another acquisition in the same process, where the lock object is shared.
func (w *world) neighbours() {
	if !w.withNeighbour || w.neighbour != nil {
		return
	}
	w.neighbour = make(chan result, 1)
	begun, ctx := make(chan struct{}), w.context()
	go func() {
		got := result{err: errEnded}
		defer func() { w.neighbour <- got }()
		w.guarded(func() {
			close(begun)
			got.lease, got.err = w.mine.Acquire(ctx)
		})
	}()
	<-begun
}

// contenders counts the contenders of all processes. Both of ours may be one contender.
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
		w.Fatalf("%s, call %d: %v", w.hook, w.n, err)
	}
}

// try does one step, in which one call of a hook panics or ends its goroutine, and checks that nothing
// is left. It reports whether there was such a call.
func (w *world) try(s step, make func(*trap, *session.Manager, string) (lock, error)) bool {
	w.paths++
	w.path = fmt.Sprintf("/lock%d", w.paths)
	var err error
	w.mine, err = make(w.trap, w.ours, w.path)
	w.must(err)
	w.theirs, err = make(new(trap), w.other, w.path)
	w.must(err)
	w.lease, w.neighbour, w.err = nil, nil, nil
	hooked := slices.Contains(hooks, w.hook)
	s.do(w)
	if hooked && (w.err != nil || w.lease == nil) {
		w.Fatalf("%s, call %d: the call has failed: %v", w.hook, w.n, w.err)
	}
	struck := w.trap.disarm()
	if w.trap.unconfigured.Load() {
		w.Fatalf("%s, call %d: a policy was asked for without a configuration", w.hook, w.n)
	}
	if w.lease != nil && w.lease.Err() == nil {
		_ = w.lease.Release(w.context())
	}
	if w.neighbour != nil {
		got := <-w.neighbour
		switch {
		case got.err == nil:
			_ = got.lease.Release(w.context()) // it can be lost, with its session
		case hooked:
			w.Fatalf("%s, call %d: a neighbour: %v", w.hook, w.n, got.err)
		case w.way != exitsOurs && !errors.Is(got.err, errEnded):
			w.Fatalf("%s, call %d: a neighbour: %v", w.hook, w.n, got.err)
		case errors.Is(got.err, context.DeadlineExceeded):
			w.Fatalf("%s, call %d: a neighbour waits for ever", w.hook, w.n)
		}
	}
	w.free("others", w.theirs)
	w.free("its own process", w.mine)
	all, err := w.theirs.Contenders(w.context())
	w.must(err)
	if len(all) > 0 {
		w.Fatalf("%s, call %d: left in the queue: %v", w.hook, w.n, all)
	}
	for _, others := range []*tally{&w.before, &w.behind} {
		zktest.Eventually(w, testserver.Patience, "the other hooks are told of every end", func() bool { return others.open() == 0 })
	}
	return struck
}

// free takes the lock and gives it back.
func (w *world) free(whose string, l lock) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testserver.Patience)
	defer cancel()
	what := fmt.Sprintf("%s, call %d: the lock is free for %s", w.hook, w.n, whose)
	zktest.Eventually(w, testserver.Patience, what, func() bool {
		lease, err := l.Acquire(ctx)
		if err == nil {
			err = lease.Release(ctx)
		}
		switch {
		case errors.Is(err, session.ErrTooManyNodes) && ctx.Err() == nil: // a removal is under way
			return false
		case errors.Is(err, session.ErrLost):
			return false
		case err != nil:
			w.Fatalf("%s, call %d: for %s the lock is not free: %v", w.hook, w.n, whose, err)
		}
		return true
	})
}

// A policy that panics, or ends its goroutine, at any of its calls leaves no node, no claim, no counted place and no
// waiter. A hook that does so changes nothing at all: the call succeeds, and other sets of hooks get their calls.
func TestHooks(t *testing.T) {
	for name, make := range locks {
		t.Run(name, func(t *testing.T) {
			if name != "plain" {
				longtest.Only(t)
			}
			for _, s := range steps {
				for what, way := range ways {
					if t.Failed() {
						return // each failure takes its time
					}
					t.Run(s.name+", "+what, func(t *testing.T) {
						w := newWorld(t, name == "local")
						w.way = way
						all := policies
						if way != exitsOurs {
							all = slices.Concat(hooks, policies)
						}
						for _, w.hook = range all {
							for w.n = 1; w.try(s, make); w.n++ {
							}
						}
					})
				}
			}
		})
	}
}

// No hook is left out.
func TestEveryHook(t *testing.T) {
	trace := reflect.ValueOf(new(trap).trace())
	for i := range trace.NumField() {
		name := trace.Type().Field(i).Name
		if trace.Field(i).IsNil() || !slices.Contains(hooks, name) {
			t.Errorf("the trap is not in the hook %s", name)
		}
	}
}
