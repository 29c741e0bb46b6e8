package core

import (
	"context"
	"errors"
	"math"
	"path"
	"slices"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/outbox"
)

// What became of a create whose reply was lost is found out by a read behind a write that a quorum has agreed to. Both
// leave together. The session is on another connection by then, and no server carries out what came over an earlier one.
// So what the read does not show will never come.
//
// A read behind a sync does not tell. A leader that has been cut off from the others goes on for several ticks. It answers
// the sync and the read of its own client alone, also while the create waits for its quorum. When the others are back, the
// node is made, and stays for as long as the session.

// behindWrite starts a read behind a write, and counts the answer to the read only if the write was answered before it,
// over the same connection. Otherwise it says that the connection was lost, and both are sent again. The write checks
// the version of a node and changes nothing. It names the node that the read is for, so that both wait in one line.
func behindWrite[T any](ctx context.Context, s *Session, about string, read func(agreed func() bool) starter[T]) starter[T] {
	return func(done func(T, error)) {
		traced := s.traceRequest(ctx, multiInfo)
		over := s.present()
		var agreed atomic.Bool
		write := outbox.Multi([]outbox.Call{versioned(codec.OpCheck, s.outward(about), anyVersion)})
		call(ctx, s, false, write, nothing)(func(_ struct{}, err error) {
			agreed.Store(err == nil)
			s.withHooks(func() { traced(s.verdict(err)) })
		})
		read(agreed.Load)(func(v T, err error) {
			if classify(err) == answered && !errors.Is(err, errNotSent) && !(agreed.Load() && s.present() == over) {
				err = zk.ErrConnectionClosed
			}
			done(v, err)
		})
	}
}

// seek looks for the node of a create whose reply was lost. If it is there, the entry takes it, and seek returns a listing
// that shows it. Of several nodes of this session, the entry takes the one with the lowest number, and the others with its id
// are removed. If there is none, seek returns nothing: there will be none.
func (e *entry) seek(ctx context.Context, lost *Creation) (*Listing, error) {
	info := hooks.RequestInfo{Op: "getChildren", Path: e.Dir}
	l, err := do(ctx, e.s, info, always, behindWrite(ctx, e.s, e.asked, func(agreed func() bool) starter[Listing] { return e.listing(ctx, agreed) }))
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	l.Names = slices.Clone(l.Names) // others share them
	ours := e.ours(l.Names)
	node, upTo, err := e.owned(ctx, ours)
	if err != nil {
		return nil, err
	}
	for _, name := range ours {
		one := path.Join(e.Dir, name)
		if node == "" || one == node {
			continue
		}
		e.s.Adopt(nil, one)
		e.s.Remove(ctx, one)
		l.Names = slices.DeleteFunc(l.Names, func(other string) bool { return other == name })
	}
	lost.Resolve(node)
	e.flight = nil // settled
	if node == "" {
		return nil, nil
	}
	e.isMade(node, upTo, e.s.room.At(node))
	return &l, e.checkNumber()
}

// ours returns the names of a listing that only nodes of the entry can have, by their numbers.
func (e *entry) ours(names []string) (ours []string) {
	for _, name := range names {
		if e.isOurs(name) {
			ours = append(ours, name)
		}
	}
	slices.SortFunc(ours, func(a, b string) int { return e.number(a) - e.number(b) })
	return ours
}

// owned returns the first of some nodes that the entry has made, or "", and for a fixed name the transaction that has made it.
// Another client can have copied the id, and its node goes when that client likes.
func (e *entry) owned(ctx context.Context, names []string) (node string, upTo int64, err error) {
	for _, name := range names {
		node = path.Join(e.Dir, name)
		stat, err := e.s.Exists(ctx, node)
		switch {
		case err != nil:
			return "", 0, err
		case e.Fixed && e.owns(stat):
			return node, stat.Czxid, nil
		case !e.Fixed && stat != nil && stat.EphemeralOwner == e.s.ID():
			return node, math.MaxInt64, nil
		}
	}
	return "", math.MaxInt64, nil
}

// owns reports whether a node at a fixed name is the one that the entry has made. stat is nil if there is none.
func (e *entry) owns(stat *zk.Stat) bool {
	return stat != nil && stat.EphemeralOwner == e.s.ID() && stat.Czxid > e.after && stat.Czxid <= e.upTo
}

// abandon follows when the entry has failed. It leaves nothing behind, and needs no further call. ctx is for hooks alone.
func (e *entry) abandon(ctx context.Context) {
	e.forgetWatch()
	if e.flight == nil {
		e.clear(ctx)
		return
	}
	e.flight.Leave()
	select {
	case <-e.flight.Answered():
		e.clear(ctx)
		return
	default:
	}
	err := e.s.begin(func() {
		<-e.flight.Answered()
		e.clear(ctx)
	})
	if err != nil { // the node goes with the session
		e.share()
	}
}

// clear has all removed that the entry has made, or may have made. No create is in flight.
func (e *entry) clear(ctx context.Context) {
	if e.founded {
		e.s.GiveBack(e.Dir) // that does nothing while there is a node in it
	}
	if c := e.flight; c != nil {
		made, err := c.Result()
		switch {
		case err == nil:
			e.isMade(made, c.upTo, c.noted)
		case Uncertain(err):
			e.doubt = true
		default:
			e.flight = nil
		}
	}
	switch {
	case e.node != "":
		r := e.remove(ctx)
		e.share() // another Enter of the name waits for the removal
		if e.checkNumber() != nil {
			e.restart(r)
		}
	case e.Fixed && e.flight != nil:
		e.eraseFixed(ctx)
	case e.doubt && !e.Fixed: // once more, also if a search has found nothing
		e.sweep(ctx)
	default:
		e.share()
	}
}

// restart deletes the directory when it is empty, so that its counter begins again.
func (e *entry) restart(r *Removal) {
	_ = e.s.begin(func() {
		<-r.Done()
		_ = e.s.Delete(e.s.life, e.Dir, anyVersion) // fails if there are other nodes, or it is gone
	})
}

// Remove is that of session.Node.
func (n *Node) Remove(ctx context.Context) *Removal {
	if n == nil || n.s == nil {
		panic("session: Node not made by Session.Enter")
	}
	n.once.Do(func() { n.removal = n.remove(ctx) })
	return n.removal
}

// remove has the node removed for certain. If a reply was lost at some time, it looks for further nodes of the entry.
func (e *entry) remove(ctx context.Context) *Removal {
	if !e.Fixed {
		r := e.s.Remove(ctx, e.node)
		if e.doubt { // the listing comes behind the delete, and does not show that node again
			e.sweep(ctx)
		}
		return r
	}
	p := e.s.removal(ctx, e.node)
	p.f, p.looks = e.erase, true // to repeat the delete could hit the node of another session
	p.depart()
	p.send()
	return p.Removal
}

// sweep deletes all nodes of the entry. They have numbers.
func (e *entry) sweep(ctx context.Context) {
	lost := e.flight
	p := e.s.persistence(ctx, "find and remove the node of a create, "+e.asked, nil, func(ctx context.Context) error {
		names, err := do(ctx, e.s, hooks.RequestInfo{Op: "getChildren", Path: e.Dir}, always,
			behindWrite(ctx, e.s, e.asked, func(func() bool) starter[[]string] {
				return func(done func([]string, error)) {
					e.s.listing(ctx, e.s.outward(e.Dir), false)(func(c children, err error) { done(c.names, err) })
				}
			}))
		if err != nil {
			return ignoreNoNode(err)
		}
		for _, name := range e.ours(names) {
			if err := ignoreNoNode(e.s.delete(ctx, path.Join(e.Dir, name), anyVersion, false)); err != nil {
				return err
			}
		}
		return nil
	})
	if lost != nil {
		lost.Leave()
		p.then, p.stay = func() { lost.Resolve("") }, lost.stay
	}
	p.start()
}

// eraseFixed finds and deletes the node of a create whose reply was lost. Others cannot create a node at its path before it
// is known what became of it, or before the servers have refused to tell.
func (e *entry) eraseFixed(ctx context.Context) {
	p := e.s.persistence(ctx, "find and remove the node of a create, "+e.asked, e.share, func(ctx context.Context) error {
		if !e.alone {
			if err := e.keepAlone(ctx); err != nil {
				return err
			}
			defer e.share()
		}
		return e.erase(ctx)
	})
	lost := e.flight
	lost.Leave()
	p.stay = func() {
		lost.stay()
		e.upTo = min(e.upTo, e.s.latest.Load()) // the write has been answered: what is made from now on is of another create
		e.share()
	}
	p.start()
}

// erase deletes the node with the fixed name if the entry has made it. It does not simply repeat a delete whose reply was
// lost: the node of another session can stand there by then.
func (e *entry) erase(ctx context.Context) error {
	full := e.s.outward(e.asked)
	info := hooks.RequestInfo{Op: "exists", Path: e.asked}
	stat, err := do(ctx, e.s, info, always, behindWrite(ctx, e.s, e.asked, func(func() bool) starter[*zk.Stat] { return e.s.exists(ctx, full) }))
	switch {
	case err != nil:
		return err
	case !e.owns(stat):
		if e.flight != nil {
			e.flight.Resolve("")
		}
		e.s.room.Gone(e.noted)
		return nil
	}
	if e.flight != nil {
		e.flight.Resolve(e.asked)
		e.isMade(e.asked, stat.Czxid, e.s.room.At(e.asked))
	}
	e.after, e.upTo = stat.Czxid-1, stat.Czxid
	return ignoreNoNode(e.s.deleteOnce(ctx, e.asked, anyVersion))
}

// takeName keeps other creates from a fixed name, and waits until removals of it have ended: a delete that is repeated must
// not hit the new node. It fails if the servers refuse such a removal.
func (e *entry) takeName(ctx context.Context) error {
	if err := e.keepAlone(ctx); err != nil {
		return e.failed(err)
	}
	for {
		r := e.s.underway.at(e.asked)
		if r == nil {
			return nil
		}
		select {
		case <-r.Done():
			if err := r.Err(); err != nil {
				return e.failed(err)
			}
		case <-ctx.Done():
			return e.failed(ctx.Err())
		case <-e.s.Done():
			return e.failed(e.s.Err())
		}
	}
}

func (e *entry) keepAlone(ctx context.Context) error {
	err := e.s.creates.alone(ctx, e.asked)
	e.alone = err == nil
	return err
}

// share ends keepAlone. It does nothing if that is not in force.
func (e *entry) share() {
	if e.alone {
		e.alone = false
		e.s.creates.shared(e.asked)
	}
}
