package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// errPending stands for the reply to a create that has not come when its caller has gone.
var errPending = errors.New("the create is in flight")

// creation is a create in flight.
type creation struct {
	e   *entry
	l   *link
	ctx context.Context // for hooks

	mu    sync.Mutex
	reply *wire.Reply // nil before the create has ended
	left  bool        // nobody waits for it: what it makes is removed
}

// end takes the reply, before any event or answer that follows.
func (c *creation) end(r wire.Reply) {
	if r.Err == nil && r.Code == codec.CodeOK {
		c.e.s.room.made(c.e.place, c.e.s.cfg.inward(r.Path))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reply = &r; c.left {
		go c.e.settle(c.ctx, c.l, r)
	}
}

// take returns the reply. If it has not come, it says so, and the create is on its own.
func (c *creation) take() wire.Reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reply != nil {
		return *c.reply
	}
	c.left = true
	return wire.Reply{Err: errPending}
}

// send sends the create and the listing together, and between them a read of the directory if one was asked for. It does not
// matter which of them the server handles first, since a listing counts only if it shows the node.
func (e *entry) send(ctx context.Context, l *link) (_ *Listing, made wire.Reply, err error) {
	c := &creation{e: e, l: l, ctx: context.WithoutCancel(ctx)}
	one := e.s.cfg.making(e.s.cfg.outward(e.asked), e.data, e.s.cfg.acl, e.mode())
	one.ended = c.end
	_, listing, err := e.s.list(ctx, l, e.dir, e.lists, flight{one})
	if made = c.take(); made.Err == nil && made.Code == codec.CodeOK {
		e.node, e.upTo = e.s.cfg.inward(made.Path), made.Zxid
	}
	return listing, made, err
}

func (e *entry) mode() CreateMode {
	if e.fixed {
		return ephemeral
	}
	return ephemeralSequential
}

// shown returns a listing that shows the node. It lists again if there is none, or if it does not: it can be older than the
// node. It returns nothing if the node is gone.
func (e *entry) shown(ctx context.Context, listing *Listing, unlisted error) (*Listing, error) {
	if err := e.checkNumber(); err != nil {
		return nil, err
	}
	name := path.Base(e.node)
	if unlisted == nil && slices.Contains(listing.Names, name) {
		return listing, nil
	}
	e.forget(listing)
	listing, err := e.s.List(ctx, e.dir, e.lists)
	switch {
	case errors.Is(err, zk.ErrNoNode), err == nil && !slices.Contains(listing.Names, name): // somebody has deleted it
		e.forget(listing)
		if e.fixed {
			e.s.room.end(e.place)
		} else {
			e.s.Remove(ctx, e.node) // if a server does not list a node that stands, nobody else would delete it
		}
		e.node = ""
		e.place, err = e.s.room.take(e.s.cfg.outward(e.asked), !e.fixed)
		return nil, err
	case err != nil:
		return nil, err
	}
	return listing, nil
}

// forget ends the use of both watches of a listing that Enter does not return.
func (e *entry) forget(l *Listing) {
	if l == nil {
		return
	}
	for _, w := range []*Watch{l.Directory, l.Children} {
		if w != nil {
			w.Forget()
		}
	}
}

// checkNumber fails at the end of the directory's counter. The next numbers would be the same again, or below all others.
func (e *entry) checkNumber() error {
	if n := e.number(path.Base(e.node)); !e.fixed && e.node != "" && (n < 0 || n == math.MaxInt32) {
		return opError("create", e.asked, fmt.Errorf("%w: it gave %d", ErrSequence, n))
	}
	return nil
}

// number returns the number of a node of ours.
func (e *entry) number(name string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, path.Base(e.asked)))
	return n
}

// What became of a create whose reply was lost is found out by a listing behind a write that a quorum has agreed to. Both
// leave together. The session is on another connection by then, and no server carries out what came over an earlier one.
// So what the listing does not show will never come.
//
// A listing behind a sync does not tell. A leader that has been cut off from the others goes on for several ticks. It answers
// the sync and the listing of its own client alone, also while the create waits for its quorum. When the others are back, the
// node is made, and stays for as long as the session.

// searchKey says which listings behind a write are the same, so that many creates that were lost with one connection do not list
// a long directory many times.
type searchKey struct {
	over    *link // all creates that were lost with earlier connections can share it
	dir     string
	options ListOptions
}

type found struct {
	listing *Listing
	err     error
}

// listBehindWrite lists the directory behind a write. It shares that with others whose creates were lost with an earlier
// connection.
func (e *entry) listBehindWrite(ctx context.Context, o ListOptions) (*Listing, error) {
	s := e.s
	return repeat(ctx, s, "getChildren", e.dir, true, func(l *link) (*Listing, bool, error) {
		list := func() (*Listing, error) {
			_, listing, err := s.list(ctx, l, e.dir, o, flight{s.cfg.checking(s.cfg.outward(e.asked))})
			return listing, err
		}
		if e.lost == nil || e.lost == l { // a listing that is under way can be older than the create
			listing, err := list()
			return listing, false, err
		}
		first := false
		one, err := s.searches.do(ctx, s, searchKey{l, e.dir, o}, func() found {
			first = true
			listing, err := list()
			return found{listing, err}
		})
		if err != nil {
			return nil, false, err
		}
		listing := one.listing.copied()
		if listing != nil && !first {
			listing.Directory.share()
			listing.Children.share()
		}
		return listing, false, one.err
	})
}

// seek looks for the node of a create whose reply was lost. If it is there, the entry takes it, and seek returns a listing
// that shows it. Of several, it takes the one with the lowest number, and the others are removed. If there is none, seek
// returns nothing: there will be none.
func (e *entry) seek(ctx context.Context) (*Listing, error) {
	listing, err := e.listBehindWrite(ctx, e.lists)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	var ours []string
	if listing != nil {
		ours = e.ours(listing.Names)
	}
	for _, name := range ours {
		node := path.Join(e.dir, name)
		if e.node != "" {
			e.s.Remove(ctx, node)
			listing.Names = slices.DeleteFunc(listing.Names, func(other string) bool { return other == name })
			continue
		}
		stat, err := e.s.Exists(ctx, node) // another client can have copied the id, and its node goes when that client likes
		if err != nil {
			return nil, err
		}
		if e.owns(stat) {
			e.node, e.upTo = node, stat.Czxid
			e.s.room.made(e.place, node)
		}
	}
	if e.node == "" {
		e.forget(listing)
		return nil, nil
	}
	return listing, e.checkNumber()
}

// ours returns the names of a listing that only nodes of the entry can have, by their numbers.
func (e *entry) ours(names []string) (ours []string) {
	for _, name := range names {
		if checkMade(e.asked, e.mode(), path.Join(e.dir, name)) == nil {
			ours = append(ours, name)
		}
	}
	slices.SortFunc(ours, func(a, b string) int { return e.number(a) - e.number(b) })
	return ours
}

// owns reports whether a node is one that the entry has made. stat is nil if there is none.
func (e *entry) owns(stat *zk.Stat) bool {
	return stat != nil && stat.EphemeralOwner == e.s.ID() && (!e.fixed || stat.Czxid > e.after && stat.Czxid <= e.upTo)
}

// abandon follows when the entry has failed, and returns err. A create that is in flight sees to itself.
func (e *entry) abandon(ctx context.Context, err error) error {
	if !e.pending {
		e.clear(ctx)
	}
	return err
}

// doubts notes that nobody knows what became of a create.
func (e *entry) doubts(l *link, r wire.Reply) {
	e.doubt, e.lost = true, nil
	if r.Err != nil {
		e.lost = l
	}
}

// settle takes the reply to a create whose caller has gone.
func (e *entry) settle(ctx context.Context, l *link, r wire.Reply) {
	err := e.s.verdict(r)
	switch {
	case err == nil:
		e.node, e.upTo = e.s.cfg.inward(r.Path), r.Zxid
	case outcomeOf(err) == inDoubt:
		e.doubts(l, r)
	}
	e.clear(ctx)
	if e.fixed {
		e.s.fixed.unlock(e.asked)
	}
}

// clear has all removed that the entry has made, or may have made. No create is in flight. ctx is for hooks alone.
func (e *entry) clear(ctx context.Context) {
	if e.founded {
		e.s.giveBack(e.s.cfg.outward(e.dir)) // that does nothing while there is a node in it
	}
	switch {
	case e.s.Err() != nil: // the node goes with the session
	case e.node != "":
		r := e.remove(ctx)
		if e.checkNumber() != nil { // the directory is deleted when it is empty, so that its counter begins again
			go func() {
				<-r.Done()
				_, _ = e.s.request(e.s.life, false, e.s.cfg.deleting(e.s.cfg.outward(e.dir), anyVersion))
			}()
		}
	case e.doubt: // once more, also if a search has found nothing
		e.sweep(ctx)
	default:
		e.s.room.end(e.place)
	}
}

// remove has the node removed for certain. If a reply was lost at some time, it looks for further nodes of the entry.
func (e *entry) remove(ctx context.Context) *Removal {
	if !e.fixed {
		r := e.s.Remove(ctx, e.node)
		if e.doubt {
			e.place = nil // that of r
			e.sweep(ctx)
		}
		return r
	}
	return e.s.removals.begin(ctx, e.node, e.place, e.erase)
}

// sweep finds and deletes all nodes of the entry.
func (e *entry) sweep(ctx context.Context) {
	find := e.erase
	if !e.fixed {
		find = e.eraseAll
	}
	e.s.removals.begin(ctx, e.asked, nil, find)
}

// eraseAll deletes all nodes with the id of the entry.
func (e *entry) eraseAll(ctx context.Context) error {
	listing, err := e.listBehindWrite(ctx, ListOptions{})
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if listing != nil {
		for _, name := range e.ours(listing.Names) {
			if err := e.s.deleteFirst(ctx, path.Join(e.dir, name)); err != nil {
				return err
			}
		}
	}
	e.s.room.end(e.place)
	return nil
}

// erase deletes the node with the fixed name if the entry has made it. It does not simply repeat a delete whose reply was
// lost: the node of another session can stand there by then.
func (e *entry) erase(ctx context.Context) error {
	s := e.s
	stat, err := s.existsBehindWrite(ctx, e.asked)
	if err != nil {
		return err
	}
	if e.owns(stat) {
		e.after, e.upTo = stat.Czxid-1, stat.Czxid
		_, err = s.request(ctx, false, s.cfg.deleting(s.cfg.outward(e.asked), anyVersion))
		if err = ignoreNoNode(err); err != nil {
			return err
		}
	}
	s.room.end(e.place)
	return nil
}

// existsBehindWrite is Exists behind a write.
func (s *Session) existsBehindWrite(ctx context.Context, at string) (*zk.Stat, error) {
	return repeat(ctx, s, "exists", at, true, func(l *link) (*zk.Stat, bool, error) {
		r, _, err := s.try(ctx, l, flight{s.cfg.checking(s.cfg.outward(at)), s.cfg.reading(codec.OpExists, s.cfg.outward(at), false)})
		return r.Stat, false, ignoreNoNode(err)
	})
}

// fixedNames keeps calls of Enter with one fixed name apart, so that each can tell its node from those of the others.
type fixedNames struct {
	mu sync.Mutex
	m  map[string]chan struct{} // by path: closed when the name is free
}

func (f *fixedNames) unlock(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.m[path])
	delete(f.m, path)
}

// takeName takes a fixed name, which unlock gives back, and waits until removals of it have ended: a delete that is repeated
// must not hit the new node. It fails if the servers refuse such a removal.
func (s *Session) takeName(ctx context.Context, path string) (err error) {
	for taken := false; !taken; {
		s.fixed.mu.Lock()
		busy := s.fixed.m[path]
		if taken = busy == nil; taken {
			if s.fixed.m == nil {
				s.fixed.m = make(map[string]chan struct{})
			}
			s.fixed.m[path] = make(chan struct{})
		}
		s.fixed.mu.Unlock()
		if !taken {
			if err := s.await(ctx, busy); err != nil {
				return err
			}
		}
	}
	for r := s.removals.at(path); r != nil && err == nil; r = s.removals.at(path) {
		if err = s.await(ctx, r.Done()); err == nil {
			err = r.Err()
		}
	}
	if err != nil {
		s.fixed.unlock(path)
	}
	return err
}
