package place

import (
	"cmp"
	"context"
	"errors"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
)

// A wait watches our own node, the nodes ahead that the rule names, and the directory if that has a configuration. Each
// request that sets a watch also tells what the node says. The wait does not wait for the answers: they come before any
// event of the watches. Until they are there, less is known than can be, and nothing is granted.
//
// One setWatches for all nodes in place of a get for each is no faster: in one run of bench/rivals, hand-overs of 2 to 100
// sessions, on loopback and with 1 ms each way, 8,000 goroutines on one lock and the memory of a waiter were all within 7 %.

// watch sets the watches that the attempt does not have yet. It returns those on the targets.
func (a *attempt) watch(ctx context.Context, targets []decide.Blocker) ([]*core.Watch, error) {
	own, err := a.s.StartWatch(ctx, a.path)
	if err != nil {
		return nil, err
	}
	a.own = own
	if a.r.Kind.Configuration != nil {
		if a.configW, err = a.s.StartWatch(ctx, a.q.dir); err != nil {
			return nil, err
		}
	}
	watches := make([]*core.Watch, len(targets))
	for i, b := range targets {
		if watches[i] = a.lastWatch(b.Node.Name); watches[i] != nil {
			continue
		}
		if watches[i], err = a.s.StartWatch(ctx, path.Join(a.q.dir, b.Node.Name)); err != nil {
			return nil, err
		}
	}
	return watches, nil
}

// lastWatch returns the watch of the last wait on a node ahead if it is pending, or has told that the node is gone,
// otherwise nil. The last listing may still show a node that is gone: the two answers cross when a holder leaves at once. To
// ask again would cost a round trip.
func (a *attempt) lastWatch(name string) *core.Watch {
	if w := a.view.watchOn(name); w != nil {
		switch w.Event() {
		case core.WatchPending, core.WatchDeleted:
			return w
		}
	}
	return nil
}

// answered waits for the answers that a grant needs: that of our own node, which can be gone without our knowing, and that
// of the configuration, which can have changed since the listing.
func (a *attempt) answered(ctx context.Context) error {
	if err := a.until(ctx, a.own.Ready()); err != nil || a.configW == nil {
		return err
	}
	return a.until(ctx, a.configW.Ready())
}

// hear reads our own node again if its watch has ended during the wait: another client may have asked for the lock since,
// which the lease has to know from its beginning. A holder that may not read its node hears of nothing.
func (a *attempt) hear(ctx context.Context) error {
	if a.own == nil || eventOf(a.own) != decide.Unclear {
		return nil
	}
	_, _, own, err := a.s.Watch(ctx, a.path)
	switch {
	case err == nil:
		a.own = own
	case errors.Is(err, zk.ErrNoNode):
		return errDeleted
	}
	return cmp.Or(ctx.Err(), a.s.Err())
}

// refusal returns what the server refuses of the watches. A client is not told when a node goes which it may not read.
func (a *attempt) refusal() error {
	for _, w := range append([]*core.Watch{a.own, a.configW}, a.view.watches...) {
		if w == nil || !w.Answered() {
			continue
		}
		if _, _, err := w.Result(); err != nil && !errors.Is(err, zk.ErrNoNode) && !core.Uncertain(err) {
			return err
		}
	}
	return nil
}

// warnAfter is how long a wait goes on before it looks for nodes ahead that nobody owns.
const warnAfter = 20 * time.Millisecond

// warn logs a warning for each of the targets that nobody owns, as far as the servers have told by now.
func (a *attempt) warn() {
	for i, b := range a.view.targets {
		if _, stat := known(a.view.watches[i]); stat != nil {
			a.warnOfOrphan(b.Node.Name, stat)
		}
	}
}

// signal has the next receive from a channel go on.
func signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default: // it does already
	}
}

// warnOfOrphan logs a warning if a node that is waited for is not ephemeral. It does so once for
// each node and manager.
func (a *attempt) warnOfOrphan(name string, stat *zk.Stat) {
	if !isOrphan(stat) {
		return
	}
	node := path.Join(a.q.dir, name)
	m := a.q.m
	if m.FirstWarning(node, stat.Czxid) {
		m.Logger().Warn("a lock waits for a node that is not ephemeral and stays until it is deleted; "+
			"delete it if nobody uses it", "lock", a.q.dir, "node", node)
	}
}
