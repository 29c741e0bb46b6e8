// Package brokenpolicies has every function of a queue.Policy panic or end its goroutine, at every call, in locks of a kind of
// one's own. The caller recovers the panic, as net/http does. The lock must be free for others afterwards.
package brokenpolicies

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
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

// try is one acquisition, in which one call of a policy panics or ends its goroutine.
type try struct {
	*bubble.World
	path         string
	mine, theirs lock
	lease        *queue.Lease
}

// lock is a lock of such a kind.
type lock struct {
	*queue.Queue
	request queue.Request
}

func (w *try) lock(m *session.Manager, kind *queue.Kind) lock {
	w.Helper()
	q, err := queue.New(m, w.path)
	w.Must(err)
	return lock{q, queue.Request{Kind: kind}}
}

func (l lock) acquire(ctx context.Context) (*queue.Lease, error) { return l.Acquire(ctx, l.request) }

// caller runs an acquisition, which may end in any way. It recovers as net/http does.
func (w *try) caller(acquire func(context.Context, queue.Request) (*queue.Lease, error)) *bubble.Call {
	w.Helper()
	return w.Go(func() (err error) {
		defer func() {
			if v := recover(); v != nil && v != (errTrap{}) {
				panic(v)
			}
		}()
		w.lease, err = acquire(w.Context(), w.mine.request)
		return err
	})
}

var steps = map[string]func(w *try){
	"granted at once": func(w *try) { w.Must(w.caller(w.mine.Acquire).Err()) },
	"tried":           func(w *try) { w.Must(w.caller(w.mine.TryAcquire).Err()) },
	"waiting": func(w *try) {
		l, err := w.theirs.acquire(w.Context())
		w.Must(err)
		call := w.caller(w.mine.Acquire) // waits, or has ended
		w.Must(l.Release(w.Context()))
		w.Must(call.Err())
	},
	"reply lost": func(w *try) {
		w.CutAfterCommit(zktest.On(zktest.OpCreate, w.path+"/"))
		w.Must(w.caller(w.mine.Acquire).Err())
	},
}

// free takes the lock and gives it back.
func (w *try) free(l lock) {
	w.Helper()
	lease, err := l.acquire(w.Context())
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && errors.Is(err, session.ErrTooManyNodes); {
		w.Pass(time.Second) // a removal is under way
		lease, err = l.acquire(w.Context())
	}
	w.Must(err)
	w.Must(lease.Release(w.Context()))
}

// A policy that panics, or ends its goroutine, at any of its calls leaves no node, no counted place and no waiter.
func TestPolicies(t *testing.T) {
	for name, kind := range kinds {
		for what, step := range steps {
			for _, exits := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, exits %v", name, what, exits), func(t *testing.T) {
					bubble.Run(t, func(w *bubble.World) { policies(w, kind, step, exits) })
				})
			}
		}
	}
}

func policies(world *bubble.World, kind func(*trap) *queue.Kind, step func(*try), exits bool) {
	var waits atomic.Int64 // as hooks count them
	hook := session.Trace{Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
		waits.Add(1)
		return ctx, func(session.AcquireResult) { waits.Add(-1) }
	}}
	// There is room for one node, so that a place that is counted and not given back is noticed.
	ours, other := world.Connect(session.WithNodeLimits(1, 1<<20), session.WithTrace(hook)), world.Connect()
	calls := 0
	for _, function := range functions {
		for n, struck := 1, true; struck; n++ {
			armed := &trap{function: function, exits: exits}
			armed.left.Store(int64(n))
			w := &try{World: world, path: fmt.Sprintf("/%s/%d", function, n)}
			w.theirs, w.mine = w.lock(other, kind(new(trap))), w.lock(ours, kind(armed))
			step(w)
			if struck = armed.struck(); struck {
				calls++
			} else {
				armed.left.Store(math.MaxInt64)
			}
			if struck != (w.lease == nil) {
				w.Errorf("struck: %v, and the lease is %v", struck, w.lease)
			}
			if left := waits.Load(); left != 0 {
				w.Errorf("%s, call %d: hooks count %d waits", function, n, left)
			}
			if w.lease != nil {
				w.Must(w.lease.Release(w.Context()))
			}
			w.free(w.theirs)
			w.free(w.mine)
			w.WantNodes(fmt.Sprintf("%s, call %d", function, n), w.path, 0)
		}
	}
	if calls == 0 {
		world.Error("no call was struck")
	}
}
