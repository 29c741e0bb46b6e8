package queue

import (
	"errors"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// The timer of a wait runs in the moment in which the turn comes. The attempt goes without a request: a check of
// the nodes would delay it, and fail it if the server did not answer.
func TestTurnComesBeforeCheck(t *testing.T) {
	p := newProcess(t, testserver.Path(t), Request{}, 1)
	holder := newProcess(t, p.q.dir, Request{}, 1).hold(t)
	s, r := testserver.Session(t, p.m), Request{Kind: mutexKind}
	noError(t, r.complete())
	a := newAttempt(p.q, s, &r, &entry{})
	if err := a.run(patience(t)); !errors.Is(err, errAhead) {
		t.Fatalf("the attempt does not wait: %v", err)
	}
	giveBack(t, holder)
	zktest.Eventually(t, testserver.Patience, "the watch to tell", func() bool {
		return a.view.watches[0].Event() == plumbing.WatchDeleted
	})
	a.waiting.asks = false // the timer is that of the check after a session timeout
	a.waiting.ring(a.wake)
	p.proxy.ResetRequests()
	noError(t, a.run(patience(t)))
	if n := p.proxy.Count(func(r zktest.Request) bool { return strings.HasPrefix(r.Path, p.q.dir) }); n > 0 {
		t.Errorf("the attempt has sent %d requests, though its turn had come", n)
	}
	giveBack(t, a.hold(patience(t)))
}
