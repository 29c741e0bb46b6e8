package session

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
)

// listAgain returns a listing that shows the node, or nothing if the node is gone. Then the entry begins again.
func (e *entry) listAgain(ctx context.Context) (*Listing, error) {
	listing, err := e.s.List(ctx, e.dir, e.lists)
	if err == nil && slices.Contains(listing.Names, path.Base(e.node)) {
		return listing, nil
	}
	listing.forget()
	if ignoreNoNode(err) != nil {
		return nil, err
	}
	if e.fixed {
		e.s.room.end(e.place)
	} else {
		e.s.Remove(ctx, e.node) // if a server does not list a node that stands, nobody else would delete it
	}
	e.node, e.upTo = "", math.MaxInt64 // nothing is known of the next node
	e.place, err = e.s.room.take(e.s.cfg.outward(e.asked), !e.fixed)
	return nil, err
}

// checkNumber fails at the end of the directory's counter. The next numbers would be the same again, or below all others.
func (e *entry) checkNumber() error {
	if e.fixed || e.node == "" {
		return nil
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(path.Base(e.node), path.Base(e.asked)))
	if n < 0 || n == math.MaxInt32 {
		return fmt.Errorf("%w: it gave %d", ErrSequence, n)
	}
	return nil
}

// What became of a create whose reply was lost is found out by a listing behind a write that a quorum has agreed to. Both
// leave together. The session is on another connection by then, and no server carries out what came over an earlier one.
// So what the listing does not show will never come.
//
// A sync in place of the write does not tell. A leader that has been cut off from the others goes on for several ticks, and
// answers the sync and the listing of its own client alone, while the create waits for its quorum. When the others are back,
// the node is made, and stays for as long as the session.

// searchKey says which searches can share a listing: many creates that were lost with one connection do not list a long
// directory many times.
type searchKey struct {
	over    *link // all creates that were lost with earlier connections can share it
	dir     string
	options ListOptions
}

type found struct {
	listing *Listing
	err     error
}

// listBehindWrite lists the directory behind a write.
func (e *entry) listBehindWrite(ctx context.Context, o ListOptions) (*Listing, error) {
	s := e.s
	return repeat(ctx, s, "getChildren", e.dir, func(l *link) (*Listing, error) {
		first := false
		list := func() found {
			first = true
			listing, err := s.list(ctx, l, e.dir, o, s.cfg.checking(e.asked))
			return found{listing, err}
		}
		if e.lost == nil || e.lost == l { // a listing that is under way can be older than the create
			one := list()
			return one.listing, one.err
		}
		one, err := s.searches.do(ctx, s, searchKey{l, e.dir, o}, list)
		if err = cmp.Or(err, one.err); err != nil {
			return nil, err
		}
		own := *one.listing // others have the same
		own.Names, own.Stat = slices.Clone(own.Names), copyStat(own.Stat)
		own.Data, own.DataStat = slices.Clip(slices.Clone(own.Data)), copyStat(own.DataStat)
		if !first {
			own.Directory.share()
			own.Children.share()
		}
		return &own, nil
	})
}

// seek looks for the node of a create whose reply was lost. If it is there, the entry takes it, and seek returns a listing
// that shows it. Of several, it takes the lowest, and removes the others. If seek returns nothing, there will be none.
func (e *entry) seek(ctx context.Context) (*Listing, error) {
	listing, err := e.listBehindWrite(ctx, e.lists)
	if listing == nil {
		return nil, ignoreNoNode(err)
	}
	for _, node := range e.ours(listing.Names) {
		if e.node != "" {
			e.s.Remove(ctx, node)
			listing.Names = slices.DeleteFunc(listing.Names, func(name string) bool { return name == path.Base(node) })
			continue
		}
		stat, err := e.s.Exists(ctx, node) // another client can have copied the id, and its node goes when that client likes
		if err != nil {
			return listing, err
		}
		if e.owns(stat) {
			e.node, e.upTo = node, stat.Czxid
			e.s.room.made(e.place, node)
		}
	}
	if e.node == "" {
		listing.forget()
		return nil, nil
	}
	return listing, e.checkNumber()
}

// ours returns the paths of nodes in a listing that only nodes of the entry can have, by their numbers.
func (e *entry) ours(names []string) (ours []string) {
	for _, name := range names {
		if node := path.Join(e.dir, name); checkMade(e.asked, !e.fixed, node) == nil {
			ours = append(ours, node)
		}
	}
	slices.Sort(ours) // a number has ten digits
	return ours
}

// owns reports whether a node is one that the entry has made. stat is nil if there is none.
func (e *entry) owns(stat *zk.Stat) bool {
	return stat != nil && stat.EphemeralOwner == e.s.ID() && (!e.fixed || stat.Czxid > e.after && stat.Czxid <= e.upTo)
}

// undo has all removed that an entry which has failed has made, or may have made, and gives its fixed name back. No create is in
// flight. ctx is for hooks alone.
func (e *entry) undo(ctx context.Context) {
	s := e.s
	if e.founded {
		s.giveBack(s.cfg.outward(e.dir)) // that does nothing while there is a node in it
	}
	switch {
	case s.Err() != nil: // the node goes with the session
	case e.node != "":
		r := (&Node{entry: e}).Remove(ctx)
		if e.checkNumber() != nil { // the directory is deleted when it is empty, so that its counter begins again
			go func() {
				<-r.Done()
				_, _ = s.request(s.life, false, s.cfg.deleting(e.dir, anyVersion))
			}()
		}
	case e.doubt: // once more, also if a search has found nothing
		_, start := s.removals.begin(ctx, e.asked, nil, e.erase)
		start()
	default:
		s.room.end(e.place)
	}
	if e.fixed {
		s.fixed.unlock(e.asked)
	}
}

// erase finds and deletes all nodes that the entry has made. It does not simply repeat a delete whose reply was lost: at a
// fixed name the node of another session can stand by then.
func (e *entry) erase(ctx context.Context) error {
	s := e.s
	var nodes []string
	if e.fixed {
		stat, err := s.existsBehindWrite(ctx, e.asked)
		if err != nil {
			return err
		}
		if e.owns(stat) {
			nodes, e.after, e.upTo = []string{e.asked}, stat.Czxid-1, stat.Czxid
		}
	} else {
		listing, err := e.listBehindWrite(ctx, ListOptions{})
		if ignoreNoNode(err) != nil {
			return err
		}
		if listing != nil {
			nodes = e.ours(listing.Names)
		}
	}
	for _, node := range nodes {
		one := s.cfg.deleting(node, anyVersion)
		one.First = true
		if _, err := s.request(ctx, false, one); ignoreNoNode(err) != nil {
			return err
		}
	}
	s.room.end(e.place)
	return nil
}

// existsBehindWrite is Exists behind a write.
func (s *Session) existsBehindWrite(ctx context.Context, at string) (*zk.Stat, error) {
	return repeat(ctx, s, "exists", at, func(l *link) (*zk.Stat, error) {
		one := s.cfg.reading(exists, at, false)
		err := ignoreNoNode(s.fly(ctx, l, s.cfg.checking(at), one))
		return one.reply.Stat, err
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

// takeName takes a fixed name, which unlock gives back, and waits until removals of it have ended.
func (s *Session) takeName(ctx context.Context, path string) (err error) {
	for f := &s.fixed; ; {
		f.mu.Lock()
		busy := f.m[path]
		if busy == nil {
			if f.m == nil {
				f.m = make(map[string]chan struct{})
			}
			f.m[path] = make(chan struct{})
		}
		f.mu.Unlock()
		if busy == nil {
			break
		}
		if err := s.await(ctx, busy); err != nil {
			return err
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
