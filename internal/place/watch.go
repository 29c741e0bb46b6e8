package place

import (
	"cmp"
	"context"
	"errors"
	"path"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/turnstile-go/turnstile/internal/core"
)

// A wait needs watches on several nodes, and nothing else as long as it is short. One request sets them. A wait
// that goes on asks who is ahead, for the error that says so, and to warn of a node that nobody owns.

// askAfter is how long a wait goes on before it asks who is ahead. It also asks about its own node then, for
// the token. A holder that has waited for less asks for its token when somebody wants it.
const askAfter = 20 * time.Millisecond

// watch sets watches on our own node, on the configuration, and on the targets. It returns those on the targets,
// with nil for a node that is gone.
func (a *attempt) watch(ctx context.Context, targets []blocker) ([]*core.Watch, error) {
	if a.asksAtOnce() {
		return a.watchAndAsk(ctx, targets)
	}
	return a.watchOnly(ctx, targets)
}

// asksAtOnce reports whether the watches have to be set by requests that also tell the data of the nodes:
//
//   - A holder that can be asked to give the lock up finds that in its own data. With a configuration it matters
//     when a node ahead was created.
//   - Servers do not tell a client when a node goes which the client may not read, and only a question for its data
//     shows that. A wait asks for the data of one node ahead. That is enough if the lock has one holder.
//   - The last watches were lost. Perhaps the server does not set any by the other request.
func (a *attempt) asksAtOnce() bool {
	return a.r.Revoked != nil || a.r.Kind.Configuration != nil ||
		a.slack > 0 || a.own != nil && a.own.Event() == core.WatchBroken
}

// watchOnly sets the watches by one request, and does not wait for the answer: see await.
func (a *attempt) watchOnly(ctx context.Context, targets []blocker) ([]*core.Watch, error) {
	watches := make([]*core.Watch, 1+len(targets))
	var paths []string
	var at []int
	for i := range watches {
		name, where := a.node.Name, a.path
		if i > 0 {
			name, where = targets[i-1].node.Name, ""
		}
		if watches[i] = a.lastWatch(name); watches[i] == nil {
			paths, at = append(paths, cmp.Or(where, path.Join(a.q.dir, name))), append(at, i)
		}
	}
	if len(paths) > 0 {
		set, err := a.s.StartWatches(ctx, paths...)
		if err != nil {
			return nil, err
		}
		for i, w := range set {
			watches[at[i]] = w
			if at[i] > 0 {
				targets[at[i]-1].bare = true
			}
		}
	}
	a.own = watches[0]
	return watches[1:], nil
}

// giveBack gives back the watches of the last wait, but for those that the next one takes over. next is the view of
// that, which nobody else has yet, or nil if there is none.
func (a *attempt) giveBack(next *view) {
	if a.view == nil {
		return
	}
	for i, b := range a.view.targets {
		if !b.bare {
			continue
		}
		if w := a.view.watches[i]; next.watchOn(b.node.Name) != w {
			a.s.GiveBack(path.Join(a.q.dir, b.node.Name), w)
		} else {
			next.targets[next.target(b.node.Name)].bare = true
		}
	}
}

// ask asks for the data of our own node and of the one ahead that an error would name. It returns once the answers
// are there or a watch has ended, so that the answers never delay a hand-over. It fails if the server refuses
// to tell.
func (a *attempt) ask(ctx context.Context) error {
	i, _ := a.view.named()
	if i < 0 || !stands(a.own) {
		return nil // the wait is about to end
	}
	name, w := a.view.targets[i].node.Name, a.view.watches[i]
	for _, node := range []string{a.path, path.Join(a.q.dir, name)} {
		if _, err := a.s.StartWatch(ctx, node); err != nil { // shares the watch
			return err
		}
	}
	if _, err := a.answered(ctx, a.own); err != nil {
		return err
	}
	stat, err := a.answered(ctx, w)
	if stat != nil {
		a.warnOfOrphan(name, stat)
	}
	return err
}

// answered waits for the answer to what ask has asked about a node. It returns nil if the node is gone, or if a watch
// ends before.
func (a *attempt) answered(ctx context.Context, w *core.Watch) (*zk.Stat, error) {
	if !w.Answered() && !stands(w) {
		return nil, nil
	}
	select {
	case <-w.Ready():
	case <-a.wake:
		poke(a.wake)
		if !w.Answered() {
			return nil, nil
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-a.s.Done():
		return nil, a.s.Err()
	}
	_, stat, err := w.Result()
	if errors.Is(err, zk.ErrNoNode) || core.Uncertain(err) {
		return nil, nil // the watch has ended
	}
	return stat, err
}

// poke has the next receive from a channel go on.
func poke(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default: // it does already
	}
}

// watchAndAsk sends all requests for watches together, and waits for their answers.
func (a *attempt) watchAndAsk(ctx context.Context, targets []blocker) ([]*core.Watch, error) {
	own, err := a.s.StartWatch(ctx, a.path)
	if err != nil {
		return nil, err
	}
	if a.r.Kind.Configuration != nil {
		if a.configW, err = a.s.StartWatch(ctx, a.q.dir); err != nil {
			return nil, err
		}
	}
	watches := make([]*core.Watch, len(targets))
	for i, b := range targets {
		if watches[i], err = a.watchAhead(ctx, b.node.Name); err != nil {
			return nil, err
		}
	}
	if err := a.settleOwn(ctx, own); err != nil {
		return nil, err
	}
	return watches, a.settleAhead(ctx, targets, watches)
}

// settleOwn waits for the answers about our own node and the configuration.
func (a *attempt) settleOwn(ctx context.Context, own *core.Watch) error {
	_, stat, err := a.settle(ctx, own)
	if errors.Is(err, zk.ErrNoNode) {
		return errDeleted
	}
	if err != nil {
		return err
	}
	a.own, a.czxid = own, stat.Czxid
	if a.configW == nil {
		return nil
	}
	_, stat, err = a.settle(ctx, a.configW)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return errDeleted // the directory is gone, and our node with it
	case err != nil:
		return err
	case stat.Mzxid != a.config.Changed:
		return errReconfigured
	}
	return nil
}

// settleAhead waits for the answers about the targets.
func (a *attempt) settleAhead(ctx context.Context, targets []blocker, watches []*core.Watch) error {
	for i, w := range watches {
		_, stat, err := a.settle(ctx, w)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			watches[i] = nil
		case err != nil:
			return err
		default:
			targets[i].replaces = targets[i].replaces && !a.policy.lasts(stat)
			a.warnOfOrphan(targets[i].node.Name, stat)
		}
	}
	return nil
}

// watchAhead returns a watch on a node ahead, and asks for its data unless that is known.
func (a *attempt) watchAhead(ctx context.Context, name string) (*core.Watch, error) {
	if w := a.lastWatch(name); w != nil && w.Answered() {
		return w, nil
	}
	return a.s.StartWatch(ctx, path.Join(a.q.dir, name))
}

// lastWatch returns the watch of the last wait on our node or one ahead if it is pending, or has told that the
// node is gone, otherwise nil. The last listing may still show a node that is gone: the two answers cross when
// a holder leaves at once. To ask again would cost a round trip.
func (a *attempt) lastWatch(name string) *core.Watch {
	if w := a.view.watchOn(name); w != nil {
		switch w.Event() {
		case core.WatchPending, core.WatchDeleted:
			return w
		}
	}
	return nil
}

// settle waits for the answer to a StartWatch.
func (a *attempt) settle(ctx context.Context, w *core.Watch) ([]byte, *zk.Stat, error) {
	if err := a.until(ctx, w.Ready()); err != nil {
		return nil, nil, err
	}
	return w.Result()
}
