package place

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// behind returns an attempt in a session of p that waits for a lock that another process holds.
func (p *process) behind(t *testing.T) *attempt {
	t.Helper()
	r := Request{Kind: mutexKind}
	expect.NoError(t, r.complete())
	a := newAttempt(p.q, (*core.Session)(testserver.Session(t, p.m)), &r, &Entry{})
	a.waits(t)
	return a
}

// waits runs the attempt, which has to wait.
func (a *attempt) waits(t *testing.T) {
	t.Helper()
	if out, err := a.run(expect.Patient(t)); out != decide.Waits || err != nil {
		t.Fatalf("the attempt does not wait: outcome %d, %v", out, err)
	}
}

// lease begins the hold of an attempt that was granted.
func (a *attempt) lease(t *testing.T) *Lease {
	turn := newTurn(expect.Patient(t), a, nil)
	turn.Guard()
	return turn.Begin(expect.Patient(t))
}

// ended waits until a watch has ended.
func ended(t *testing.T, w *core.Watch) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "the watch to tell", func() bool { return !stands(w) })
}

// leaves has the attempt find that its context has ended.
func (p *process) leaves(t *testing.T, a *attempt) {
	t.Helper()
	ctx, cancel := context.WithCancel(expect.Patient(t))
	cancel()
	if out, err := a.run(ctx); out != decide.Failed || !errors.Is(err, context.Canceled) {
		t.Fatalf("the attempt goes on: outcome %d, %v", out, err)
	}
}

// The next wait of an attempt takes over the watches that are pending.
func TestWatchesAreTakenOver(t *testing.T) {
	p := newProcess(t, testserver.Path(t), Request{})
	holder := newProcess(t, p.q.dir, Request{}).hold(t)
	a := p.behind(t)
	w, own := a.view.watches[0], a.own
	<-own.Ready()
	_, err := testserver.Admin(t).Set(a.path, nil, -1)
	expect.NoError(t, err)
	ended(t, own)
	a.waits(t)
	if a.own == own || a.view.watches[0] != w {
		t.Error("the watch ahead is not the same, or that on the own node is")
	}
	p.leaves(t, a)
	testserver.WaitChildren(t, p.q.dir, 1)
	giveBack(t, holder)
}

// The contender of a Local has lost its place, and the next one has not listed yet. Until then nobody can say who is
// ahead: nothing tells the last view any more when that node goes.
func TestLostPlaceLeavesNoView(t *testing.T) {
	p := newProcess(t, testserver.Path(t), Request{})
	holder := newProcess(t, p.q.dir, Request{}).hold(t)
	var shown Shown
	a := p.behind(t)
	a.entry.Shown = &shown
	a.show(a.view)
	<-a.own.Ready()
	testserver.Delete(t, a.path)
	ended(t, a.own)
	if out, err := a.run(expect.Patient(t)); out != decide.Again || !errors.Is(err, errDeleted) {
		t.Fatalf("the attempt has its node: outcome %d, %v", out, err)
	}
	giveBack(t, holder)
	if why := p.q.why(shown.view.Load(), time.Now()); why.Reason != "" {
		t.Errorf("nobody holds, but: %q", why.Reason)
	}
}

// The timer of a wait runs in the moment in which the turn comes. The attempt goes without a request: a check of
// the nodes would delay it, and fail it if the server did not answer.
func TestTurnComesBeforeCheck(t *testing.T) {
	p := newProcess(t, testserver.Path(t), Request{})
	holder := newProcess(t, p.q.dir, Request{}).hold(t)
	a := p.behind(t)
	giveBack(t, holder)
	ended(t, a.view.watches[0])
	a.waiting.late = true // the timer is that of the check after a session timeout
	a.waiting.ring(a.wake)
	p.proxy.ResetRequests()
	if out, err := a.run(expect.Patient(t)); out != decide.Granted || err != nil {
		t.Fatalf("outcome %d, %v", out, err)
	}
	if n := p.proxy.Count(func(r zktest.Request) bool { return strings.HasPrefix(r.Path, p.q.dir) }); n > 0 {
		t.Errorf("the attempt has sent %d requests, though its turn had come", n)
	}
	giveBack(t, a.lease(t))
}

// An attempt waits in a call of its caller, with a Watch hook, and goes on in another call after that one has ended. Its
// requests have the values of the hook, and end with the second call.
func TestWaitGoesOnInAnotherCall(t *testing.T) {
	type key struct{}
	asked := make(chan bool, 1)
	p := newProcess(t, testserver.Path(t), Request{}, session.WithTrace(session.Trace{
		Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
			return context.WithValue(ctx, key{}, true), func(error) {}
		},
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if r.Op == "exists" && len(asked) == 0 {
				asked <- ctx.Value(key{}) == true
			}
			return ctx, func(error) {}
		},
	}))
	holder := newProcess(t, p.q.dir, Request{}).hold(t)
	r := Request{Kind: mutexKind}
	expect.NoError(t, r.complete())
	a := newAttempt(p.q, (*core.Session)(testserver.Session(t, p.m)), &r, &Entry{})
	first, cancel := context.WithCancel(expect.Patient(t))
	if out, err := a.run(first); out != decide.Waits || err != nil {
		t.Fatalf("the attempt does not wait: %v, %v", out, err)
	}
	cancel()
	a.waiting.late = true // the timer is that of the check after a session timeout
	a.waiting.ring(a.wake)
	a.waits(t)
	if !<-asked {
		t.Error("the requests of the wait do not have the values of the Watch hook")
	}
	giveBack(t, holder)
	for out := decide.Waits; out != decide.Granted; {
		a.block(expect.Patient(t))
		var err error
		if out, err = a.run(expect.Patient(t)); err != nil {
			t.Fatal(err)
		}
	}
	giveBack(t, a.lease(t))
}

// A try has waited for as long as it may. That is busy, unless the caller has gone as well.
func TestEndOfTry(t *testing.T) {
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	gone, leave := context.WithCancel(t.Context())
	leave()
	a := &attempt{limited: over}
	for ctx, want := range map[context.Context]error{t.Context(): ErrBusy, gone: context.Canceled} {
		if in, err := a.endOf(ctx, over.Err()); in != decide.Quit || !errors.Is(err, want) || errors.Is(err, over.Err()) {
			t.Errorf("%v: %v, want %v", in, err, want)
		}
	}
	if _, err := a.endOf(t.Context(), ErrConflict); !errors.Is(err, ErrConflict) {
		t.Error(err)
	}
}
