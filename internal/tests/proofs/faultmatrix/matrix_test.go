package faultmatrix

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest"
)

// TestMatrix tries each fault at each step of each lock. There are two traces of a lock: an
// acquisition behind another holder, with the wait, the hold and the release; and an acquisition
// that is cancelled, with its cleanup.
//
// Each cell checks that the server has what was reported, that no other client is let in while a
// holder reports held, that no node is left though the sessions stay open, that a client
// which comes later gets the lock, and that the session survives a connection that is cut.
func TestMatrix(t *testing.T) {
	longtest.Only(t)
	var cells tally
	traces := 0
	t.Cleanup(func() {
		longtest.Covered(t, "%d of %d cells of %d traces; in %d the session survived, and in %d the next client got the lock before a "+
			"holder had heard that its session was ended by force", cells.tried, cells.planned, traces, cells.kept, cells.late)
	})
	for _, sub := range subjects() {
		for _, cancels := range []bool{false, true} {
			if cancels && sub.noCancel {
				continue
			}
			tr := &trace{subject: sub, cancels: cancels}
			traces++
			t.Run(tr.name(), func(t *testing.T) { tr.run(t, &cells) })
		}
	}
}

var (
	every = flag.Int("every", 0, "try one in so many cells; default: all")
	salt  = flag.String("salt", "", "decides which cells -every tries")
)

// tally counts the cells.
type tally struct {
	mu                         sync.Mutex
	planned, tried, kept, late int // see outcome
}

func (c *tally) count(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// wrong is what goes wrong in a cell: a fault at a step.
type wrong struct {
	fault fault
	at    step
}

// spares reports whether no session may be lost by it: it is over at once.
func (w *wrong) spares() bool { return !w.fault.forces && w.fault.lasts == 0 }

func (w *wrong) String() string { return fmt.Sprintf("%s at %v", w.fault.name, w.at) }

// trace is the way of one lock through a cell, and its steps.
type trace struct {
	subject subject
	cancels bool // we cancel the call while it waits
	steps   []step
}

func (tr *trace) name() string {
	if tr.cancels {
		return tr.subject.name + "-cancelled"
	}
	return tr.subject.name
}

// run records the steps and tries each fault at each.
func (tr *trace) run(t *testing.T, cells *tally) {
	t.Parallel()
	tr.record(t)
	for _, f := range allFaults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, at := range tr.steps {
				here, ok := f.at(at)
				if !ok {
					continue
				}
				cells.count(func() { cells.planned++ })
				if !longtest.Chosen(*salt, fmt.Sprintf("%s/%s/%v", tr.name(), f.name, at), *every) {
					continue
				}
				t.Run(at.String(), func(t *testing.T) {
					t.Parallel()
					out, err := tr.try(t, &wrong{here, at})
					cells.count(func() {
						cells.tried++
						if err == nil && out.kept {
							cells.kept++
						}
						if err == nil && out.late {
							cells.late++
						}
					})
				})
			}
		})
	}
}

// recordings is how often a trace is recorded.
const recordings = 3

// record finds the steps of the trace. One that does not come each time is none, because a fault could wait for
// it in vain.
func (tr *trace) record(t *testing.T) {
	t.Helper()
	tr.steps = tr.recordOnce(t)
	for range recordings - 1 {
		again := tr.recordOnce(t)
		tr.steps = slices.DeleteFunc(tr.steps, func(s step) bool {
			if slices.Contains(again, s) {
				return false
			}
			t.Logf("%v does not come each time", s)
			return true
		})
	}
}

// recordOnce goes through the trace with no fault, in a session that is in no danger.
func (tr *trace) recordOnce(t *testing.T) []step {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := newCell(t, common(t), tr, longTimeout)
	out, err := c.run(ctx, nil)
	if err == nil && len(out.steps) == 0 {
		err = errors.New("there are no steps")
	}
	if err != nil {
		t.Fatalf("%s without any fault: %v\n%s", tr.name(), err, c.story())
	}
	if tr.subject.first != nil {
		out.steps = append(out.steps, whileWaiting)
	}
	if c.holding.fired() {
		out.steps = append(out.steps, whileHolding)
	}
	return out.steps
}

// tries bounds how often a cell is tried that was none, by what a busy machine did.
const tries = 20

// try runs one cell.
func (tr *trace) try(t *testing.T, w *wrong) (out outcome, err error) {
	on := shared
	if w.fault.pauses {
		on = alone
	}
	s := on(t) // it may have to wait for its turn
	var c *cell
	for range tries {
		if c, out, err = tr.once(t, s, w); err != errNotStruck && err != errTooSlow {
			break
		}
		t.Log("once again: ", err)
	}
	switch {
	case err != nil:
		t.Errorf("%v\n%v of %s, of %v.\n%s\nTo run this alone:\n  %s=1 go test -count=1 ./internal/tests/proofs/faultmatrix -run '^%s$' -every=1",
			err, w, tr.name(), tr.steps, c.story(), zktest.RequireEnv, strings.ReplaceAll(t.Name(), "/", "$/^"))
	case out.fresh > time.Second:
		t.Logf("a fresh client was in %v after the end of the fault:\n%s", out.fresh, c.story())
	}
	return out, err
}

func (tr *trace) once(t *testing.T, s *site, w *wrong) (*cell, outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := newCell(t, s, tr, timeout)
	out, err := c.run(ctx, w)
	return c, out, err
}

// story returns all that happened in a cell: the requests, and the log.
func (c *cell) story() string {
	var b strings.Builder
	s := c.newSteps()
	for _, r := range c.proxy.Requests() {
		if r.Op == zktest.OpPing {
			continue
		}
		fmt.Fprintf(&b, "%8.3fs  connection %d, session %#x: %v %s", r.At.Sub(c.began).Seconds(), r.Conn, r.Session, r.Op, r.Path)
		if st, ok := s.next(r); ok {
			fmt.Fprintf(&b, " (%v)", st)
		}
		b.WriteByte('\n')
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return b.String() + c.log.String()
}
