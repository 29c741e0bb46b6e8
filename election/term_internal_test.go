package election

import (
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/queue"
)

// A request to resign can come before the leader's function is called. Then there is no term, and the next one is
// none of its business.
func TestRequestBeforeTerm(t *testing.T) {
	e, early, later := new(Election), new(queue.Lease), new(queue.Lease)
	e.resignFrom(early)
	if first := new(term); e.begin(first, early) || first.lease != nil {
		t.Error("the term begins all the same")
	}
	e.over()
	e.callOff(nil)
	ended := 0
	second := &term{end: func(cause error) {
		ended++
		if !errors.Is(cause, ErrResigned) {
			t.Errorf("cause %v", cause)
		}
	}}
	if !e.begin(second, later) {
		t.Error("the next term does not begin")
	}
	e.resignFrom(early)
	if ended != 0 || second.called != nil {
		t.Error("a request that came late ends another term")
	}
	e.resignFrom(later)
	if ended != 1 || second.called == nil {
		t.Error("the term goes on")
	}
}
