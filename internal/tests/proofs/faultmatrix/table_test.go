package faultmatrix

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// tally counts the results of the cells.
type tally struct {
	mu                     sync.Mutex
	planned, tried, passed int
	kept                   int // in how many our session has survived
	late                   int // see outcome
	slowest                time.Duration
}

func (c *tally) plan() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.planned++
}

func (c *tally) done(out outcome, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried++
	if err != nil {
		return
	}
	c.passed++
	if out.kept {
		c.kept++
	}
	if out.late {
		c.late++
	}
	c.slowest = max(c.slowest, out.fresh)
}

// print prints what all cells together have shown.
func (c *tally) print(t *testing.T, traces int) {
	fmt.Printf("%d of %d cells passed. In %d the session survived. In %d a session was ended by force while its lock was held, "+
		"and the next client got the lock before the holder had heard of it: nothing can prevent that, and the next client's "+
		"token was higher. A new client waited for %v at most.\n", c.passed, c.tried, c.kept, c.late, c.slowest.Round(time.Millisecond))
	longtest.Covered(t, "%d of %d cells of %d traces", c.tried, c.planned, traces)
}
