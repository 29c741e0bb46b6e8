package locktest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func cases() []testCase {
	lock := func(_ Subject, l Lock) bool { return l.Lock != nil }
	lease := func(_ Subject, l Lock) bool { return l.Acquire != nil }
	tries := func(_ Subject, l Lock) bool { return l.TryLock != nil }
	shares := func(s Subject, _ Lock) bool { return s.SharesPlace }
	noGate := func(s Subject, _ Lock) bool { return !s.Gate }
	keeps := func(s Subject, _ Lock) bool { return s.KeepsPlace }
	shared := func(s Subject, _ Lock) bool { return s.Shared }
	return []testCase{
		{"take and release", nil, inBubble(takeAndRelease)},
		{"a context bounds the wait only", nil, inBubble(contextBoundsWait)},
		{"busy", tries, inBubble(busyTries)},
		{"many tries", tries, inBubble(manyTries)},
		{"a function that panics", nil, inBubble(panicking)},

		{"cancel at each request", nil, cancelAtEachRequest},
		{"cancel at the grant", nil, inBubble(cancelAtGrant)},
		{"a context that has ended", nil, inBubble(endedContext)},
		{"WithMaxWait", nil, inBubble(maxWait)},

		{"reconnect at each request", nil, reconnectAtEachRequest},
		{"session lost at each request", nil, loseSessionAtEachRequest},
		{"node of a waiter deleted", nil, deleteWaiter},
		{"lost while held", nil, loseHold},
		{"lost and not unlocked", lock, lostSlot},

		{"release without an answer", nil, releaseWithoutAnswer},
		{"asked while held", nil, askHolder},
		{"asked while waiting", nil, askWaiter},

		{"hooks", noGate, hooks},
		{"hooks of a loss", noGate, hooksOfLoss},

		{"bad arguments", nil, inBubble(badArguments)},
		{"unlock without a lock", lock, inBubble(notHeld)},
		{"release twice", lease, inBubble(releaseTwice)},

		{"many goroutines", nil, inBubble(crowd)},
		{"first come, first served", nil, inBubble(order)},
		{"first come, first served in a process", nil, inBubble(orderInProcess)},
		{"nothing grows", nil, inBubble(leaks)},

		{"shared place", shares, inBubble(sharedPlace)},
		{"kept place", keeps, keptPlace},
		{"end of a kept place", keeps, keptPlaceEnds},

		{"owner", lock, inBubble(owner)},
		{"owner of a lost lock", lock, inBubble(ownerOfLost)},
		{"no owner", lock, inBubble(noOwner)},
		{"unlock of a lost one of several", lock, inBubble(unlockLostFirst)},
		{"close while waiting", nil, inBubble(closeWaiting)},
		{"close while held", nil, closeHeld},
		{"on the shared server", shared, onSharedServer},
	}
}

// A call is a way of the subject, whatever the object.
type call struct {
	name  string
	try   bool
	index int
}

// eachCall makes a case of a function that needs one world for each call.
func eachCall(t *testing.T, s Subject, f func(*world, call)) {
	t.Helper()
	for _, c := range s.calls {
		t.Run(c.name, func(t *testing.T) { inWorld(t, s, func(w *world) { f(w, c) }) })
	}
}

// of returns the call as one of the lock of a process.
func (c call) of(p *process) way { return p.ways()[c.index] }

// patient returns a context for a call that gets the lock by itself, and a function for when it has it. The context does
// not end then, since the function of a Do has it.
func (w *world) patient() (ctx context.Context, got func()) {
	ctx, cancel := context.WithCancel(w.Context())
	w.Cleanup(cancel)
	late := time.AfterFunc(settling, cancel)
	return ctx, func() { late.Stop() }
}

// take takes a lock that is free, or that becomes free by itself.
func (p *process) take(w way) *hold {
	p.Helper()
	ctx, got := p.patient()
	h, err := w.take(ctx)
	p.Must(err)
	got()
	return h
}

// holds takes the lock, and returns what releases it.
func (p *process) holds() func() {
	p.Helper()
	h := p.take(p.ways()[0])
	return func() { p.Want("release", h.end(), nil) }
}

// waits begins each call that waits, and returns when they can do nothing else.
func (p *process) waits(ctx context.Context, ways ...way) (all []taking) {
	for _, w := range ways {
		all = append(all, w.begin(ctx))
		synctest.Wait()
	}
	return all
}
