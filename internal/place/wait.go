package place

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/turnstile-go/turnstile/internal/core"
)

// A wait can last for hours, and a process can have thousands of them. So while there is nothing to do but
// wait, the attempt returns errAhead out of all functions that decide, and the call that wants the lock is
// blocked in a function that needs hardly any stack. When something happens, the attempt runs again and goes on
// from its wait.

// wait is the wait of an attempt whose watches are set. The nodes that it waits for are in the attempt's view.
type wait struct {
	rest  int         // what the nodes in the way weigh that are not watched
	began time.Time   // when the watches were set
	stops []func()    // cancel what the watches tell
	told  *watching   // the calls of the Watch hook; nil without one
	timer *time.Timer // calls ring
	due   atomic.Bool // the timer has run
	late  bool        // it has run before
}

// startWait watches our own node and the nodes ahead that the rule names. If the attempt has no wait when it
// returns nil, the directory has to be listed again.
func (a *attempt) startWait(ctx context.Context, ahead *tail) error {
	a.waited, a.children = true, nil    // the node ahead uses the watch up when it leaves
	targets := slices.Clone(ahead.last) // the clone lets the rest of the slice be freed during the wait
	plain := a.plain()
	for i := range targets {
		targets[i].plain = plain
	}
	watches, err := a.watch(ctx, targets)
	switch {
	case errors.Is(err, zk.ErrConnectionClosed):
		return nil // the listing waits for the next connection
	case err != nil:
		return err
	}
	if plain {
		a.own.Say(core.OwnerWaits)
	}
	a.show(a.viewOf(targets, watches, ahead))
	w := &wait{rest: ahead.rest, began: time.Now()}
	for _, one := range append(slices.Clone(watches), a.own, a.configW) {
		if one != nil {
			w.stops = append(w.stops, one.Notify(a.wake))
		}
	}
	if config := a.configW; config != nil && !config.Answered() {
		go func() { // the answer can tell of a change that came before the watch, which no event tells
			<-config.Ready()
			poke(a.wake)
		}()
	}
	w.timer = time.AfterFunc(min(warnAfter, a.s.Timeout()), func() { w.ring(a.wake) })
	a.waiting = w
	return nil
}

// ring notes that the timer has run, and wakes the attempt.
func (w *wait) ring(wake chan<- struct{}) {
	w.due.Store(true)
	poke(wake)
}

// stop cancels all that wakes the attempt.
func (w *wait) stop() {
	w.timer.Stop()
	for _, stop := range w.stops {
		stop()
	}
}

// goOn goes on with the wait. It returns true when the attempt may go, and false when it has to list again. While
// neither is known it returns errAhead: the wait stands, and the caller calls block before it calls goOn again.
func (a *attempt) goOn(ctx context.Context) (granted bool, err error) {
	w := a.waiting
	if granted, err = a.awake(ctx, w); !errors.Is(err, errAhead) {
		w.stop()
		a.waiting = nil
		a.pace.Rested(time.Since(w.began))
		w.told.end(err)
	}
	return granted, err
}

// awake looks at what has woken the attempt.
func (a *attempt) awake(ctx context.Context, w *wait) (granted bool, err error) {
	seen := a.look(w)
	if seen == nothingYet && w.due.Swap(false) {
		if there, err := a.check(ctx, w); !there || err != nil {
			return false, err
		}
		seen = a.look(w)
	}
	if seen == turnCame {
		if err := a.answered(ctx); err != nil {
			return false, err
		}
		seen = a.look(w)
	}
	switch {
	case seen == turnCame:
		return true, nil
	case seen == lookAgain:
		return false, cmp.Or(a.s.Err(), a.refusal()) // the end of the session breaks the watches
	case seen == placeLost:
		return false, errDeleted
	case ctx.Err() != nil:
		return false, ctx.Err()
	}
	w.follow(ctx, a.q.hooks(), a.q, a.view)
	return false, errAhead
}

// look is what the watches say.
func (a *attempt) look(w *wait) sight {
	return look(w.rest, a.view.targets, a.view.watches, a.own, a.reconfigured(), a.policy, a.slack)
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

// waitAtOnce is startWait, block and goOn in one, for a wait that is short.
func (a *attempt) waitAtOnce(ctx context.Context, ahead *tail) (granted bool, err error) {
	if err := a.startWait(ctx, ahead); err != nil || a.waiting == nil {
		return false, err
	}
	for {
		granted, err := a.goOn(ctx)
		if !errors.Is(err, errAhead) {
			return granted, err
		}
		a.block(ctx)
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
	for _, b := range append([]blocker{{node: a.node}}, targets...) {
		node := path.Join(a.q.dir, b.node.Name)
		stat, err := a.s.Exists(ctx, node)
		if err != nil {
			return false, err
		}
		if stat == nil {
			a.s.Forget(node, nil) // nobody will tell its event
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
