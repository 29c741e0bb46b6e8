package brokenhooks

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// way is what a hook or a policy does instead of returning.
type way int

const (
	panics    way = iota // a policy in the caller's goroutine
	exits                // ends the goroutine: a policy that of the caller
	exitsOurs            // policies only: ends a goroutine of the module, where a panic would end the program
)

var ways = map[string]way{"panics": panics, "exits": exits, "exits ours": exitsOurs}

// errTrap is what a trap panics with.
type errTrap struct{}

// trap makes one call of one hook panic, or end its goroutine.
type trap struct {
	mu     sync.Mutex
	hook   string // or policy; "": disarmed
	way    way
	left   int             // calls until then
	caller map[string]bool // the goroutines of callers
	struck bool

	unconfigured atomic.Bool // a policy was asked for without what it goes by
}

// arm has the n-th call of a hook strike.
func (t *trap) arm(hook string, way way, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hook, t.way, t.left, t.struck, t.caller = hook, way, n, false, nil
}

// here says that the calling goroutine is a caller's.
func (t *trap) here() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.caller == nil {
		t.caller = make(map[string]bool)
	}
	t.caller[goroutine()] = true
}

// disarm reports whether the trap has struck.
func (t *trap) disarm() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hook = ""
	return t.struck
}

// call is made by every hook and every policy. Hooks have goroutines of their own, and strike in any case.
func (t *trap) call(hook string) {
	t.mu.Lock()
	strikes := t.hook == hook && !t.struck
	if strikes && slices.Contains(policies, hook) {
		strikes = t.caller[goroutine()] == (t.way != exitsOurs)
	}
	if strikes {
		t.left--
		t.struck = t.left == 0
		strikes = t.struck
	}
	way := t.way
	t.mu.Unlock()
	switch {
	case !strikes:
	case way == panics:
		panic(errTrap{})
	default:
		runtime.Goexit()
	}
}

// goroutine returns the name of the calling goroutine: "goroutine 7".
func goroutine() string {
	buf := make([]byte, 64)
	head, _, _ := bytes.Cut(buf[:runtime.Stack(buf, false)], []byte(" ["))
	return string(head)
}

// hooks are the names of all hooks that can strike.
var hooks = []string{
	"Traceparent", "Request", "Request end", "Watch", "Watch end", "Acquire", "Acquire end",
	"Release", "Release end", "Hold", "Hold end", "Loss", "Retry", "State",
}

// policies are the names of the functions of policies.
var policies = []string{"Policy", "Weight", "Replaces", "Configured"}

// trace returns hooks that call the trap.
func (t *trap) trace() session.Trace {
	end := func(hook string) func(error) { return func(error) { t.call(hook) } }
	return session.Trace{
		Traceparent: func(context.Context) string { t.call("Traceparent"); return "" },
		Request: func(ctx context.Context, _ session.RequestInfo) (context.Context, func(error)) {
			t.call("Request")
			return ctx, end("Request end")
		},
		Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
			t.call("Watch")
			return ctx, end("Watch end")
		},
		Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			t.call("Acquire")
			return ctx, func(session.AcquireResult) { t.call("Acquire end") }
		},
		Release: func(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) {
			t.call("Release")
			return ctx, end("Release end")
		},
		Hold: func(context.Context, session.HoldInfo) func(error) {
			t.call("Hold")
			return end("Hold end")
		},
		Loss:  func(context.Context, session.HoldInfo, error) { t.call("Loss") },
		Retry: func(context.Context, session.RetryInfo) { t.call("Retry") },
		State: func(session.Change) { t.call("State") },
	}
}

// policy is the policy of a mutex.
func (t *trap) policy(queue.Node) queue.Policy {
	t.call("Policy")
	return queue.Policy{
		Weight:   func(queue.Node) int { t.call("Weight"); return 1 },
		Replaces: func(queue.Node) bool { t.call("Replaces"); return false },
	}
}

func (t *trap) configured(n queue.Node, config queue.Config) (queue.Policy, queue.Tightening, error) {
	if len(config.Data) == 0 {
		t.unconfigured.Store(true)
	}
	t.call("Configured")
	return t.policy(n), queue.Tightening{}, nil
}
