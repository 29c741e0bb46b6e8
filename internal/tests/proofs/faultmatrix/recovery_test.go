package faultmatrix

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest"
)

var (
	every = flag.Int("every", 0, "try one in so many cells; default: all cells of TestMatrix, and one in 40 of the 17,000 of TestRecovery")
	salt  = flag.String("salt", "", "decides which cells -every tries")
)

// wrong is what goes wrong in a cell: a fault at a step, and perhaps a second one in the recovery from it.
type wrong struct {
	fault fault
	at    step
	then  *recovery
}

// spares reports whether no session may be lost by it: it is over at once.
func (w *wrong) spares() bool { return w.then == nil && !w.fault.forces && w.fault.lasts == 0 }

func (w *wrong) String() string {
	text := fmt.Sprintf("%s at %v", w.fault.name, w.at)
	if w.then != nil {
		text += fmt.Sprintf(", and then %v", w.then)
	}
	return text
}

// start arms the faults.
func (w *wrong) start(ctx context.Context, c *cell) {
	c.at, c.referee.forced = w.at, w.fault.forces || w.then != nil && w.then.forces
	c.strike = w.fault.start(ctx, c, w.at)
	if w.then != nil {
		c.again = w.then.start(ctx, c)
	}
}

// recovery is a fault at the n-th request of the recovery from another one. The first is the handshake of the
// connection that ours makes when the other fault is over. Heartbeats do not count.
type recovery struct {
	fault
	n int
}

func (r recovery) String() string { return fmt.Sprintf("%s-%d", r.name, r.n) }

// start arms the fault. The first one has been armed.
func (r recovery) start(ctx context.Context, c *cell) *strike {
	var mu sync.Mutex
	back, came := false, 0
	steps := c.newSteps()
	return r.startWhen(ctx, c, func(req zktest.Request) bool {
		_, isStep := steps.next(req)
		connects := req.Op == zktest.OpConnect
		mu.Lock()
		defer mu.Unlock()
		back = back || connects && c.strike.ended()
		if !back || !connects && !isStep || !r.meets(req) {
			return false
		}
		came++
		return came == r.n
	})
}

// requestsLate is how many requests of a recovery meet a second fault.
const requestsLate = 3

// firsts are the faults that a client recovers from by a new connection, and seconds those that meet it then.
func firsts() []fault { return named("cut-before", "cut-after", "expire", "to-client-twice") }
func seconds() []fault {
	return named("cut-before", "cut-after", "expire", "to-server-half", "to-client-half")
}

// named returns some of all faults.
func named(names ...string) []fault {
	return slices.DeleteFunc(allFaults(), func(f fault) bool { return !slices.Contains(names, f.name) })
}

// legendLate explains the table of second faults.
const legendLate = `One fault rarely comes alone. Here each step of each lock has met each of four faults: cut-before,
cut-after, expire and to-client-twice. When that was over and the client connected again, a second fault
struck the first, second or third request of the recovery, of which the first is the handshake. The columns
are the second faults. The figures are as above: cells passed of those tried, and the longest wait of a new
client.

`

// TestRecovery tries a second fault in the recovery from a first one, at each step of each lock. The checks are
// those of TestMatrix.
func TestRecovery(t *testing.T) {
	longtest.Only(t)
	table := newTable(seconds())
	t.Cleanup(func() { table.publish(t, "recovery", legendLate) })
	forAllTraces(t, table, (*trace).runTwice)
}

// runTwice records the steps and tries each pair of faults at each.
func (tr *trace) runTwice(t *testing.T, table *table) {
	t.Parallel()
	tr.record(t)
	table.steps(tr.name(), len(tr.steps))
	for _, first := range firsts() {
		for _, at := range tr.steps {
			here, ok := first.at(at)
			if !ok {
				continue
			}
			for _, then := range recoveries() {
				both := &wrong{fault: here, at: at, then: &then}
				name := fmt.Sprintf("%s/%v/%v", first.name, at, then)
				table.planned(tr.name(), then.name)
				if !longtest.Chosen(*salt, tr.name()+"/"+name, cmp.Or(*every, 40)) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					out, err := tr.try(t, both)
					table.done(tr.name(), then.name, out, err)
				})
			}
		}
	}
}

// recoveries returns each second fault at each request.
func recoveries() (all []recovery) {
	for _, f := range seconds() {
		for n := range requestsLate {
			all = append(all, recovery{fault: f, n: n + 1})
		}
	}
	return all
}
