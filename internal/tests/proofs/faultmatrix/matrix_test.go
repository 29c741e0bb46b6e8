package faultmatrix

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

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
	var planned, tried atomic.Int64
	traces := 0
	t.Cleanup(func() { longtest.Covered(t, "%d of %d cells of %d traces", tried.Load(), planned.Load(), traces) })
	for _, sub := range subjects() {
		for _, cancels := range []bool{false, true} {
			if cancels && sub.noCancel {
				continue
			}
			tr := &trace{subject: sub, cancels: cancels}
			traces++
			t.Run(tr.name(), func(t *testing.T) { tr.run(t, &planned, &tried) })
		}
	}
}

var (
	every = flag.Int("every", 0, "try one in so many cells; default: all")
	salt  = flag.String("salt", "", "decides which cells -every tries")
)

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
func (tr *trace) run(t *testing.T, planned, tried *atomic.Int64) {
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
				planned.Add(1)
				if !longtest.Chosen(*salt, fmt.Sprintf("%s/%s/%v", tr.name(), f.name, at), *every) {
					continue
				}
				t.Run(at.String(), func(t *testing.T) {
					t.Parallel()
					tr.try(t, &wrong{here, at})
					tried.Add(1)
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
	c := newCell(t, tr, longTimeout)
	steps, err := c.run(ctx, nil)
	if err == nil && len(steps) == 0 {
		err = errors.New("there are no steps")
	}
	if err != nil {
		t.Fatalf("%s without any fault: %v\n%s", tr.name(), err, c.story())
	}
	if tr.subject.first != nil {
		steps = append(steps, whileWaiting)
	}
	if c.holding.fired() {
		steps = append(steps, whileHolding)
	}
	return steps
}

// tries bounds how often a cell is tried that was none, by what a busy machine did.
const tries = 20

// try runs one cell.
func (tr *trace) try(t *testing.T, w *wrong) {
	var c *cell
	var err error
	for range tries {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		c = newCell(t, tr, timeout)
		_, err = c.run(ctx, w)
		cancel()
		if err != errNotStruck && err != errTooSlow {
			break
		}
		t.Log("once again: ", err)
	}
	if err != nil {
		t.Errorf("%v\n%v of %s, of %v.\n%s\nTo run this alone:\n  %s=1 go test -count=1 ./internal/tests/proofs/faultmatrix -run '^%s$' -every=1",
			err, w, tr.name(), tr.steps, c.story(), zktest.RequireEnv, strings.ReplaceAll(t.Name(), "/", "$/^"))
	}
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
