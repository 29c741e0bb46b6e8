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
		{"on the shared server", nil, onSharedServer},
	}
}

// A call is a way of the subject, whatever the object.
type call struct {
	name  string
	try   bool
	index int
}

// calls returns the calls that the subject has.
func calls(t *testing.T, s Subject) (all []call) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		for i, w := range newWorld(t, s).process().ways() {
			all = append(all, call{w.name, w.try, i})
		}
	})
	return all
}

// eachCall makes a case of a function that needs one world for each call.
func eachCall(t *testing.T, s Subject, f func(*world, call)) {
	t.Helper()
	for _, c := range calls(t, s) {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(newWorld(t, s), c) })
		})
	}
}

// of returns the call as one of the lock of a process.
func (c call) of(p *process) way { return p.ways()[c.index] }

func (c call) label(busy bool) string {
	if busy {
		return c.name + " while busy"
	}
	return c.name
}

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
	p.must(w.name, err)
	got()
	return h
}

// holds takes the lock, and returns what releases it.
func (p *process) holds() func() {
	p.Helper()
	h := p.take(p.ways()[0])
	return func() { p.want("release", h.end(), nil) }
}

// waits begins each call that waits, and returns when they can do nothing else.
func (p *process) waits(ctx context.Context, ways ...way) (all []taking) {
	for _, w := range ways {
		all = append(all, w.begin(ctx))
		p.idle()
	}
	return all
}

// idle waits until nothing can happen but by time. On a real server it returns at once.
func (w *world) idle() {
	if w.server != nil {
		synctest.Wait()
	}
}

// pass lets virtual time go by.
func (w *world) pass(d time.Duration) {
	if w.server != nil {
		time.Sleep(d)
		synctest.Wait()
	}
}
