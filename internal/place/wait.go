package place

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
)

// A wait can last for hours, and a process can have thousands of them. So while there is nothing to do but
// wait, the attempt returns Waits out of all functions that decide, and the call that wants the lock is
// blocked in a function that needs hardly any stack. When something happens, the attempt runs again and goes on
// from its wait.

// startWait watches our own node and the nodes ahead that the rule names, and looks at the watches.
func (a *attempt) startWait(ctx context.Context) (decide.Input, error) {
	ahead := a.ahead
	a.ahead, a.names = nil, nil // so that they can be freed
	if err := a.slow(ctx, ahead.Count() < a.least); err != nil {
		return decide.Quit, err
	}
	a.least = min(a.least, ahead.Count())
	a.follows = a.successorOf(ahead)
	a.waited = a.follows == nil
	a.children = nil // the node ahead uses the watch up when it leaves
	err := a.watchAll(ctx, ahead)
	switch {
	case errors.Is(err, zk.ErrConnectionClosed):
		return decide.Stirred, nil // the listing waits for the next connection
	case err != nil:
		return decide.Quit, err
	}
	return a.look(ctx)
}

// watchAll sets the watches of a wait, and what tells of them.
func (a *attempt) watchAll(ctx context.Context, ahead *decide.Tail) error {
	targets := slices.Clone(ahead.Last) // the clone lets the rest of the slice be freed during the wait
	watches, err := a.watch(ctx, targets)
	if err != nil {
		return err
	}
	if a.plain() {
		a.own.Say(core.OwnerWaits)
	}
	a.show(a.viewOf(targets, watches, ahead))
	w := &wait{rest: ahead.Rest, began: time.Now()}
	for _, one := range append(slices.Clone(watches), a.own, a.configW) {
		if one != nil {
			w.stops = append(w.stops, one.Notify(a.wake))
		}
	}
	if config := a.configW; config != nil && !config.Answered() {
		go func() { // the answer can tell of a change that came before the watch, which no event tells
			<-config.Ready()
			signal(a.wake)
		}()
	}
	w.timer = time.AfterFunc(min(warnAfter, a.s.Timeout()), func() { w.ring(a.wake) })
	a.waiting = w
	return nil
}

// ring notes that the timer has run, and wakes the attempt.
func (w *wait) ring(wake chan<- struct{}) {
	w.due.Store(true)
	signal(wake)
}

// stop cancels all that wakes the attempt.
func (w *wait) stop() {
	w.timer.Stop()
	for _, stop := range w.stops {
		stop()
	}
}

// look looks at what has woken the attempt. The wait stands while that is Quiet.
func (a *attempt) look(ctx context.Context) (decide.Input, error) {
	w := a.waiting
	in, err := a.seen(ctx, w)
	if in != decide.Quiet || err != nil {
		w.stop()
		a.waiting = nil
		a.pace.Rested(time.Since(w.began))
		w.told.end(err)
	}
	return in, err
}

// seen is look without the end of the wait.
func (a *attempt) seen(ctx context.Context, w *wait) (decide.Input, error) {
	seen := a.sight(w)
	if seen == decide.Quiet && w.due.Swap(false) {
		if there, err := a.check(ctx, w); !there || err != nil {
			return decide.Stirred, err
		}
		seen = a.sight(w)
	}
	if seen == decide.Free {
		if err := a.answered(ctx); err != nil {
			return decide.Quit, err
		}
		seen = a.sight(w)
	}
	switch {
	case seen == decide.Free && !a.waited:
		// Without a listing the place could not be kept. The end of the node ahead has a second event, which ends
		// watches on the children. It comes before the answer to the delete, and must not end the watch that the next
		// listing sets.
		return decide.Stirred, a.until(ctx, a.follows.removed())
	case seen == decide.Free:
		return a.free()
	case seen == decide.Stirred:
		return seen, cmp.Or(a.s.Err(), a.refusal()) // the end of the session breaks the watches
	case seen == decide.Lost:
		return seen, errDeleted
	case ctx.Err() != nil:
		return decide.Quit, ctx.Err()
	}
	w.follow(ctx, a.q.hooks(), a.q, a.view)
	return decide.Quiet, nil
}

// block returns when an attempt that waits has something to look at, or when ctx ends. It does as little as
// possible: a process has as many goroutines in it as it has waiters. The end of the session ends all watches, and
// so wakes the attempt.
func (a *attempt) block(ctx context.Context) {
	select {
	case <-a.wake:
	case <-ctx.Done():
	}
}

// fewTargets is how many nodes are asked for by name at most. To ask for more costs more than a
// listing.
const fewTargets = 8

// check follows when the timer has run. It looks who is ahead, and from the second time on whether all nodes are still there.
func (a *attempt) check(ctx context.Context, w *wait) (there bool, err error) {
	w.timer.Reset(a.s.Timeout())
	a.warn()
	if !w.late {
		w.late = true
		return true, nil
	}
	return a.allThere(w.told.within(ctx))
}

// allThere reports whether all nodes that are watched are still there. It returns false if there
// are too many to ask for, so that the attempt lists.
//
// No wake-up is lost as far as we know. If one is lost all the same, it costs a session timeout,
// and the contender does not wait for ever. To ask for a few nodes by name keeps all contenders
// of a long queue from listing it.
func (a *attempt) allThere(ctx context.Context) (bool, error) {
	targets := a.view.targets
	if len(targets) > fewTargets {
		return false, nil
	}
	for _, b := range append([]decide.Blocker{{Node: a.node}}, targets...) {
		node := path.Join(a.q.dir, b.Node.Name)
		stat, err := a.s.Exists(ctx, node)
		if err != nil {
			return false, err
		}
		if stat == nil {
			a.s.Forget(node) // nobody will tell its event
			return false, nil
		}
	}
	if a.configW == nil {
		return true, nil
	}
	config, err := readConfig(ctx, a.s, a.q.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil // our node is gone too, and the next listing says so
	}
	return config.Changed == a.config.Changed, err
}

// follow begins a call, unless the node of the present call stands.
func (w *wait) follow(ctx context.Context, t *hooks.Trace, q *Queue, v *view) {
	if t.Watch == nil {
		return
	}
	if w.told == nil {
		w.told = &watching{}
	}
	if !stands(w.told.on) {
		w.told.end(nil)
		w.told.begin(ctx, t, q, v)
	}
}
