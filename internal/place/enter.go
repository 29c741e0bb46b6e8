package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/kinds"
)

// entrants are attempts that enter the queue at once. There is one, or there are several of one
// session that have directories of their own. Then one transaction creates the nodes of all.
type entrants []entrant

// entrant is an attempt with the context of its acquisition.
type entrant struct {
	*attempt
	ctx context.Context
}

// enter creates the nodes. After that each attempt has a listing that was made after its node, or
// the reason why it has none. An error says that no attempt has entered. All of them have to leave.
//
// The create and the listings are sent together. It does not matter which of them the server
// handles first, since a listing counts only if it shows the node.
func (all entrants) enter(ctx context.Context) (err error) {
	if err := all.look(); err != nil {
		return err
	}
	for _, a := range all {
		a.q.yield(a.s, a.r)
	}
	first := all[0]
	room, end, err := all.reserve(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil || len(all) == 1 && first.failed != nil { // of several, others are taken before that one leaves
			for _, a := range all {
				a.leaving() // before the end of the room, so that it is on its way at all times
			}
		}
		end()
	}()
	in := decide.Run
	for tries := 0; ; {
		switch all.step(in) {
		case decide.Create:
			if tries++; tries > 1 {
				if err := first.slow(ctx, false); err != nil {
					return err
				}
			}
			in, err = all.create(ctx, room)
		case decide.Seek:
			in, err = all.seek(ctx, tries)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// step takes an input that is that of all, and returns what follows.
func (all entrants) step(in decide.Input) decide.Effect {
	var move decide.Move
	for _, a := range all {
		move = a.must(in)
	}
	return move.Do
}

// create makes the nodes.
func (all entrants) create(ctx context.Context, room *core.Reservation) (decide.Input, error) {
	if err := all.send(ctx, room); err != nil {
		return decide.Quit, err
	}
	first := all[0]
	_, err := first.creation.Result()
	switch {
	case err == nil:
		for i, err := range all.each(entrant.arrive) {
			all[i].failed = err
		}
		return decide.Made, nil
	case errors.Is(err, zk.ErrNoNode) && first.entry.renews != nil:
		return decide.Lost, errDeleted // the node that was to be replaced
	case errors.Is(err, zk.ErrNoNode):
		// A directory is missing. It can vanish at any moment while it is empty.
		return decide.Parentless, all.makeParents()
	case errors.Is(err, zk.ErrConnectionClosed):
		return decide.ReplyLost, nil
	}
	return decide.Quit, err
}

// each calls f for all attempts at the same time, and returns the errors.
func (all entrants) each(f func(entrant) error) []error {
	errs := make([]error, len(all))
	var g sync.WaitGroup
	defer g.Wait()
	for i, one := range all[1:] {
		g.Go(func() { errs[i+1] = f(one) })
	}
	errs[0] = f(all[0])
	return errs
}

// send sends the create of the nodes and the listings together, and waits for the answers to all of
// them. The answer to the create is in the creation of each attempt.
func (all entrants) send(ctx context.Context, room *core.Reservation) error {
	if err := all.startCreate(ctx, room); err != nil {
		return err
	}
	all.each(func(a entrant) error {
		a.names, a.unlisted = a.survey(a.ctx)
		return nil
	})
	first := all[0]
	if err := first.until(ctx, first.creation.Done()); err != nil {
		return err
	}
	if shown := first.entry.Shown; shown != nil {
		shown.Placed.Tell()
	}
	return nil
}

// startCreate sends the create of the nodes, or the renewal of a place.
func (all entrants) startCreate(ctx context.Context, room *core.Reservation) error {
	var ops []any
	first := all[0]
	switch {
	case first.entry.beside != nil:
		if err := first.askPlace(ctx); err != nil {
			return err
		}
	case first.entry.renews != nil:
		ops = append(ops, &zk.DeleteRequest{Path: first.entry.renews.path, Version: -1})
	}
	if len(all) == 1 && ops == nil {
		name, mode := first.newName()
		c, err := first.s.StartCreate(ctx, room, path.Join(first.q.dir, name), first.r.Data, mode)
		if err == nil {
			first.sent(c)
		}
		return err
	}
	before := len(ops)
	for _, a := range all {
		name, mode := a.newName()
		ops = append(ops, &zk.CreateRequest{Path: path.Join(a.q.dir, name), Data: a.r.Data, Flags: mode.Flags()})
	}
	t, err := first.s.StartMulti(ctx, room, ops...)
	if err != nil {
		return err
	}
	for i, a := range all {
		a.sent(t.Creation(before + i))
	}
	return nil
}

// sent takes note of a create that was sent.
func (a *attempt) sent(c *core.Creation) {
	if a.creation == nil {
		a.after = c.After()
		if old := a.entry.renews; old != nil {
			a.after = max(a.after, old.config.Changed)
		}
	}
	a.creation = c
	if shown := a.entry.Shown; shown != nil {
		depart := c.Leave
		shown.depart.Store(&depart)
	}
}

// arrive follows when the create has succeeded. It sees to it that the listing shows the node.
func (a entrant) arrive() (err error) {
	made, _ := a.creation.Result()
	if err := a.found(made); err != nil {
		return err
	}
	a.creation = nil // so that it can be freed
	if a.unlisted == nil && slices.Contains(a.names, a.node.Name) {
		return nil
	}
	a.names, err = a.list(a.ctx)
	return err
}

// makeParents makes the directories that are missing by the listings. If there are none, one has
// vanished just now and come again, or a server lags behind: then it makes all.
func (all entrants) makeParents() error {
	missing := slices.DeleteFunc(slices.Clone(all), func(a entrant) bool { return a.unlisted == nil })
	if len(missing) == 0 {
		missing = all
	}
	return cmp.Or(missing.each(func(a entrant) error {
		made, err := a.s.MakeDirectory(a.ctx, a.q.dir)
		a.founded = a.founded || made
		return err
	})...)
}

// newName returns the name to create, and the mode of the create. A node that shares or renews a
// place has the sequence number of that place. Otherwise the server gives the number.
func (a *attempt) newName() (string, core.CreateMode) {
	name := kinds.NodeName(a.id, a.r.Prefix, a.r.Weight, a.entry.Lazy)
	var other *place
	switch {
	case a.entry.beside != nil:
		other = a.entry.beside.t.place
	case a.entry.renews != nil:
		other = a.entry.renews.place
	default:
		return name, core.EphemeralSequential
	}
	return fmt.Sprintf("%s%010d", name, other.node.Sequence), core.Ephemeral
}

// reserve sets aside the room for the nodes of all. The caller calls end when they are there, or will not be.
func (all entrants) reserve(ctx context.Context) (room *core.Reservation, end func(), err error) {
	first := all[0]
	var w core.Want
	for _, a := range all {
		name, mode := a.newName()
		w.Nodes++
		w.Bytes += a.s.NodeBytes(path.Join(a.q.dir, name), mode == core.EphemeralSequential)
	}
	if old := first.entry.renews; old != nil {
		w.Deletes = []string{old.path}
	}
	if before := first.entry.Before; before != nil {
		w.Yield = func() {
			first.s.Leaving(before.path)
			first.entry.Shown.Placed.Tell()
		}
	}
	return first.reserve(ctx, w)
}

// reserve sets room aside. If the lock is taken together with others, it is that of all of them.
func (a *attempt) reserve(ctx context.Context, w core.Want) (room *core.Reservation, end func(), err error) {
	if v, ok := ctx.Value(advanceKey{}).(RoomInAdvance); ok {
		if room, err = v.In(ctx, a.s); err != nil {
			return nil, nil, err
		}
		if room != nil {
			return room, func() {}, a.s.Extend(ctx, room, w)
		}
	}
	if room, err = a.s.Reserve(ctx, w); err != nil {
		return nil, nil, err
	}
	return room, room.End, nil
}
