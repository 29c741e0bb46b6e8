package brokenpolicies

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/turnstile-go/turnstile/queue"
)

// way is what a policy does instead of returning.
type way int

const (
	panics way = iota
	exits      // ends the goroutine of the caller
)

var ways = map[string]way{"panics": panics, "exits": exits}

// errTrap is what a trap panics with.
type errTrap struct{}

// trap makes one call of one function of a policy panic, or end its goroutine.
type trap struct {
	mu       sync.Mutex
	function string // "": disarmed
	way      way
	left     int // calls until then
	struck   bool

	unconfigured atomic.Bool // a policy was asked for without what it goes by
}

// arm has the n-th call of a function strike.
func (t *trap) arm(function string, way way, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.function, t.way, t.left, t.struck = function, way, n, false
}

// disarm reports whether the trap has struck.
func (t *trap) disarm() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.function = ""
	return t.struck
}

// call is made by every function of a policy.
func (t *trap) call(function string) {
	t.mu.Lock()
	strikes := false
	if t.function == function && !t.struck {
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
		t.unconfigured.Store(true)
	}
	t.call("Configured")
	return t.policy(n), nil
}
