package room

import (
	"cmp"
	"context"
)

// Want is what Reserve sets aside room for.
type Want struct {
	Nodes, Bytes int      // see SizeOf
	Deletes      []string // nodes that the transaction deletes which creates the others

	// Yield, if not nil, is called once if there is too little room, now or later. It has a node of ours
	// removed, and says so with Depart. It must not block.
	Yield func()

	// Over is closed when the nodes are about to go. If it is nil, that is when the ctx of Reserve ends.
	Over <-chan struct{}
}

// Reserve waits for room, and sets it aside until End of the Reservation. Callers get room in the order in
// which they came, as soon as deletes that are on their way have made enough. Reserve fails with ctx's error,
// that of the session, or at once with ErrTooManyNodes if what is on its way is not enough.
func (a *Account) Reserve(ctx context.Context, w Want) (*Reservation, error) {
	v := &Reservation{a: a, want: Size{w.Nodes, w.Bytes}, over: cmp.Or(w.Over, ctx.Done())}
	if err := a.add(ctx, v, a.need(w), w.Yield); err != nil {
		v.End() // it may have got its room just before
		return nil, err
	}
	return v, nil
}

// Extend adds to v, as Reserve does, what it lacks for further nodes. If nodes of v are about to go, it may wait for
// their room. It does nothing after End of v.
func (a *Account) Extend(ctx context.Context, v *Reservation, w Want) error {
	return a.add(ctx, v, a.need(w), w.Yield)
}

// need returns the room that a request needs, which takes over that of the nodes that it deletes.
func (a *Account) need(w Want) Size {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Size{w.Nodes, w.Bytes}.beyond(a.creditLocked(w.Deletes))
}

// creditLocked returns the room of the nodes at some paths.
func (a *Account) creditLocked(paths []string) (all Size) {
	seen := make(map[*Node]bool)
	for _, path := range paths {
		if n := a.nodes[path]; n != nil && !seen[n] {
			seen[n] = true
			all = all.plus(n.size)
		}
	}
	return all
}

// add adds room to a reservation. It waits while deletes are on their way that will make room, or until ctx
// or the session ends.
func (a *Account) add(ctx context.Context, v *Reservation, need Size, yield func()) error {
	me := &asking{ended: ctx.Done(), v: v, need: need}
	err := a.ask(me)
	if err == nil && me.got != nil {
		err = a.judge(me, &yield)
	}
	for err == nil && me.got != nil {
		select {
		case <-me.got:
			return nil
		case <-me.look:
			err = a.judge(me, &yield)
		case <-ctx.Done():
			err = ctx.Err()
		case <-a.life.Done():
			err = context.Cause(a.life)
		}
	}
	if err != nil {
		a.withdraw(me)
	}
	return err
}

// End frees the rest of a reservation. The room of its nodes is free when they go. Further calls do nothing.
func (v *Reservation) End() {
	if v == nil {
		return
	}
	v.a.mu.Lock()
	defer v.a.mu.Unlock()
	if v.ended {
		return
	}
	v.ended = true
	delete(v.a.open, v)
	v.a.used = v.a.used.minus(v.free)
	v.a.leaving = v.a.leaving.plus(v.leaving)
	if isOver(v.over) && v.all != v.free.plus(v.leaving) {
		v.a.lookAgainLocked() // some nodes stay, at which missing took all of them for leaving
	}
	v.free, v.leaving = Size{}, Size{}
	for _, n := range v.nodes {
		n.of = nil // held locks do not keep v
	}
	v.nodes = nil
	v.a.grantLocked()
}
