package hold

import (
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// The session may have only one node, that of the present turn. The waiters still get the next turn:
// their contender enters when the node is gone, in whatever way the turn ends.
func TestLocalAtLimitOfNodes(t *testing.T) {
	for what, end := range map[string]func(*testing.T, *place.Lease){
		"released": giveBack,
		"deleted by an operator": func(t *testing.T, l *place.Lease) {
			testserver.Delete(t, l.Path())
			lostBy(t, l)
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := testserver.Path(t)
			p := newProcess(t, dir, place.Request{}, 1, session.WithMaxNodes(1))
			first := p.hold(t)
			second, third := p.wait(t, 1), p.wait(t, 2)
			giveBack(t, first)
			l := second.lease(t)
			end(t, l)
			giveBack(t, third.lease(t))
			testserver.WaitChildren(t, dir, 0)
		})
	}
}

// If other locks have all the nodes that the session may have, the waiters get the error.
func TestLocalBeyondLimitOfNodes(t *testing.T) {
	dir := testserver.Path(t)
	p := newProcess(t, dir, place.Request{}, 1, session.WithMaxNodes(1))
	q, err := place.New((*core.Manager)(p.m), testserver.Path(t))
	expect.NoError(t, err)
	other, err := q.Acquire(expect.Patient(t), place.Request{Kind: mutexKind})
	expect.NoError(t, err)
	if _, err := p.Acquire(expect.Patient(t)); !errors.Is(err, session.ErrTooManyNodes) {
		t.Errorf("Acquire: %v", err)
	}
	giveBack(t, other)
	giveBack(t, p.hold(t))
	testserver.WaitChildren(t, dir, 0)
}
