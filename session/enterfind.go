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

// listAgain returns a listing that shows the node, or nothing if it is gone.
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
	e.node, e.upTo = "", math.MaxInt64
	e.place, err = e.s.room.take(e.s.cfg.outward(e.asked), !e.fixed)
	return nil, err
}

// checkNumber fails at the end of the counter: the next numbers are the same, or below all others.
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

// A listing behind a write that a quorum agrees to tells what became of a create whose reply was lost. The session is
// on another connection by then, and no server carries out what came over an earlier one. So what is not listed will
// never come.
//
// A sync does not do: a leader that has been cut off answers it, and lists, while the create waits for its quorum.
// Later the node is made.

// searchKey says which searches share a listing: creates that were lost together list a directory once.
type searchKey struct {
	over    *link
	dir     string
	options ListOptions
}

type found struct {
	listing *Listing
	err     error
}

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
		own := *one.listing
		own.Names, own.Stat = slices.Clone(own.Names), copyStat(own.Stat)
		own.Data, own.DataStat = slices.Clip(slices.Clone(own.Data)), copyStat(own.DataStat)
		if !first {
			own.Directory.share()
			own.Children.share()
		}
		return &own, nil
	})
}

// seek looks for the node of a create whose reply was lost, and returns a listing that shows it. Of several nodes, it
// keeps the lowest. If it returns nothing, there will be none.
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
		stat, err := e.s.Exists(ctx, node) // another client can have copied the id into its node
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

// ours returns the paths of a listing that can be the entry's, by their numbers.
func (e *entry) ours(names []string) (ours []string) {
	for _, name := range names {
		if node := path.Join(e.dir, name); checkMade(e.asked, !e.fixed, node) == nil {
			ours = append(ours, node)
		}
	}
	slices.Sort(ours)
	return ours
}

// owns reports whether stat, which may be nil, is that of a node of the entry.
func (e *entry) owns(stat *zk.Stat) bool {
	return stat != nil && stat.EphemeralOwner == e.s.ID() && (!e.fixed || stat.Czxid > e.after && stat.Czxid <= e.upTo)
}

// undo removes all that a failed entry has made, or may have made. No create is in flight. ctx is for hooks.
func (e *entry) undo(ctx context.Context) {
	s := e.s
	if e.founded {
		s.giveBack(s.cfg.outward(e.dir))
	}
	switch {
	case s.Err() != nil: // the node goes with the session
	case e.node != "":
		r := (&Node{entry: e}).Remove(ctx)
		if e.checkNumber() != nil { // so that the counter of an empty directory begins again
			go func() {
				<-r.Done()
				_, _ = s.request(s.life, false, s.cfg.deleting(e.dir, anyVersion))
			}()
		}
	case e.doubt: // even if a search has found nothing
		_, start := s.removals.begin(ctx, e.asked, nil, e.erase)
		start()
	default:
		s.room.end(e.place)
	}
	if e.fixed {
		s.fixed.unlock(e.asked)
	}
}

// erase finds and deletes all nodes of the entry. It does not just repeat a delete: at a fixed name, another
// session's node can stand by then.
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

func (s *Session) existsBehindWrite(ctx context.Context, at string) (*zk.Stat, error) {
	return repeat(ctx, s, "exists", at, func(l *link) (*zk.Stat, error) {
		one := s.cfg.reading(exists, at, false)
		err := ignoreNoNode(s.fly(ctx, l, s.cfg.checking(at), one))
		return one.reply.Stat, err
	})
}

// fixedNames keeps calls of Enter with one fixed name apart, so that each can tell its node.
type fixedNames struct {
	mu sync.Mutex
	m  map[string]chan struct{} // closed when the name is free
}

func (f *fixedNames) unlock(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.m[path])
	delete(f.m, path)
}

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
