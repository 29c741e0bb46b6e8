// Package brokenpolicies has every function of a queue.Policy panic or end its goroutine, at every call, in locks of a kind of
// one's own. The caller recovers the panic, as net/http does. The lock must be free for others afterwards.
package brokenpolicies

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// errTrap is what a trap panics with.
type errTrap struct{}

// trap makes one call of one function of a policy panic, or end its goroutine. The zero trap never does.
type trap struct {
	function string
	exits    bool
	left     atomic.Int64 // calls until then
}

// call is made by every function of a policy.
func (t *trap) call(function string) {
	switch {
	case t.function != function || t.left.Add(-1) != 0:
	case t.exits:
		runtime.Goexit()
	default:
		panic(errTrap{})
	}
}

func (t *trap) struck() bool { return t.function != "" && t.left.Load() <= 0 }

// functions are the names of the functions of policies.
var functions = []string{"Policy", "Weight", "Replaces", "Configured"}

// policy is the policy of a mutex.
func (t *trap) policy(queue.Node) queue.Policy {
	t.call("Policy")
	return queue.Policy{
		Weight:   func(queue.Node) int { t.call("Weight"); return 1 },
		Replaces: func(queue.Node) bool { t.call("Replaces"); return false },
	}
}

func (t *trap) configured(n queue.Node, config queue.Config) (queue.Policy, error) {
	if len(config.Data) == 0 {
		return queue.Policy{}, errors.New("a policy was asked for without a configuration")
	}
	t.call("Configured")
	return t.policy(n), nil
}

// kinds are kinds of lock whose policies call the trap.
var kinds = map[string]func(t *trap) *queue.Kind{
	"policy": func(t *trap) *queue.Kind {
		return &queue.Kind{Name: "policy", Prefixes: []string{"custom-"}, Policy: t.policy}
	},
	"configured": func(t *trap) *queue.Kind {
		return &queue.Kind{
			Name: "configured", Prefixes: []string{"custom-"},
			Configuration: &queue.Configuration{Config: []byte("x"), Policy: t.configured},
		}
	},
}

// lock is a lock of such a kind.
type lock struct {
	*queue.Queue
	kind *queue.Kind
}

func newLock(t *testing.T, m *session.Manager, path string, kind *queue.Kind) lock {
	t.Helper()
	q, err := queue.New(m, path)
	if err != nil {
		t.Fatal(err)
	}
	return lock{q, kind}
}

func (l lock) acquire(ctx context.Context) (*queue.Lease, error) {
	return l.Acquire(ctx, queue.Request{Kind: l.kind})
}

// try is one acquisition, in which one call of a policy panics or ends its goroutine.
type try struct {
	*testing.T
	server       *zktest.Server
	mine, theirs lock
	path         string
	lease        *queue.Lease
}

func (w *try) must(err error) {
	w.Helper()
	if err != nil {
		w.Error(err)
	}
}

// caller runs an acquisition, and returns when it has ended in any way. It recovers as net/http does.
func (w *try) caller(acquire func(context.Context) (*queue.Lease, error)) {
	w.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil && v != (errTrap{}) {
				panic(v)
			}
		}()
		var err error
		w.lease, err = acquire(w.Context())
		w.must(err)
	}()
	select {
	case <-done:
	case <-time.After(testserver.Patience):
		w.Fatal("the call hangs")
	}
}

var steps = map[string]func(w *try){
	"granted at once": func(w *try) { w.caller(w.mine.acquire) },
	"tried": func(w *try) {
		w.caller(func(ctx context.Context) (*queue.Lease, error) {
			return w.mine.TryAcquire(ctx, queue.Request{Kind: w.mine.kind})
		})
	},
	"waiting": func(w *try) {
		l, err := w.theirs.acquire(w.Context())
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
			released <- l.Release(w.Context())
		}()
		w.caller(w.mine.acquire)
		close(ended)
		w.must(<-released)
	},
	"reply lost": func(w *try) {
		w.server.CutAfterCommit(zktest.On(zktest.OpCreate, w.path+"/"))
		w.caller(w.mine.acquire)
	},
}

// contenders counts the contenders of all processes.
func (w *try) contenders() int {
	all, err := w.theirs.Contenders(w.Context(), w.theirs.kind)
	if err != nil {
		return 0
	}
	return len(all)
}

// free takes the lock and gives it back.
func (w *try) free(whose string, l lock) {
	w.Helper()
	zktest.Eventually(w, testserver.Patience, "the lock is free for "+whose, func() bool {
		lease, err := l.acquire(w.Context())
		if errors.Is(err, session.ErrTooManyNodes) { // a removal is under way
			return false
		}
		w.must(err)
		if err == nil {
			w.must(lease.Release(w.Context()))
		}
		return true
	})
}

// A policy that panics, or ends its goroutine, at any of its calls leaves no node, no counted place and no waiter.
func TestPolicies(t *testing.T) {
	for name, kind := range kinds {
		for what, step := range steps {
			for _, exits := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, exits %v", name, what, exits), func(t *testing.T) {
					server := zktest.Start(t)
					// There is room for one node, so that a place that is counted and not given back is noticed.
					var waits atomic.Int64 // as hooks count them
					hook := session.Trace{Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
						waits.Add(1)
						return ctx, func(session.AcquireResult) { waits.Add(-1) }
					}}
					ours := testserver.Connect(t, server.ConnectString(), session.WithNodeLimits(1, 1<<20), session.WithTrace(hook),
						session.WithLogger(slog.New(slog.DiscardHandler)))
					other := testserver.Connect(t, server.ConnectString())
					calls := 0
					for _, function := range functions {
						for n, struck := 1, true; struck && !t.Failed(); n++ {
							armed := &trap{function: function, exits: exits}
							armed.left.Store(int64(n))
							path := fmt.Sprintf("/%s/%d", function, n)
							w := &try{T: t, server: server, path: path, theirs: newLock(t, other, path, kind(new(trap)))}
							w.mine = newLock(t, ours, path, kind(armed))
							step(w)
							if struck = armed.struck(); struck {
								calls++
							} else {
								armed.left.Store(math.MaxInt64)
							}
							if struck != (w.lease == nil) {
								t.Errorf("struck: %v, and the lease is %v", struck, w.lease)
							}
							if left := waits.Load(); left != 0 {
								t.Errorf("%s, call %d: hooks count %d waits", function, n, left)
							}
							if w.lease != nil {
								w.must(w.lease.Release(t.Context()))
							}
							w.free("others", w.theirs)
							w.free("its own process", w.mine)
							if left := w.contenders(); left > 0 || t.Failed() {
								t.Errorf("%s, call %d: %d left in the queue", function, n, left)
							}
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
