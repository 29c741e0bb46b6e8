// Package locks reads the locks of an ensemble as they lie on its servers: which kind of lock a
// directory is, its holders and its waiters. It knows the nodes of this module, Apache Curator,
// kazoo and go-zookeeper.
//
// [Tree] makes the requests. [Tree.Read] reads one lock, and [Tree.Walk] finds all locks below a path. [Tree.Delete]
// deletes the node of a contender. The names and the data are read by pure functions: see [classify].
package locks

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/session"
)

// Tree makes requests, in one session after the other. Its methods may be called by several goroutines
// at once.
type Tree struct{ Manager *session.Manager }

// ErrUnreachable is matched by errors that say that no server answers.
var ErrUnreachable = errors.New("no server answers")

// patience bounds the time for what is to be read. A list that takes longer than the session can wait is asked for again and
// again, and never comes.
const patience = 30 * time.Second

// NewTree returns the tree of a manager.
func NewTree(m *session.Manager) *Tree { return &Tree{m} }

func (t *Tree) bounded(ctx context.Context, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, patience, fmt.Errorf("%w: %s did not come within %v", ErrUnreachable, what, patience))
}

// unreachable returns ErrUnreachable in place of an error if the time for a request is over.
func unreachable(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), ErrUnreachable) {
		return context.Cause(ctx)
	}
	return err
}

// do makes one request, again if its session is lost.
func (t *Tree) do(ctx context.Context, f func(*session.Session) error) error {
	for {
		s, err := t.Manager.Session(ctx)
		if err == nil {
			err = f(s)
		}
		if !errors.Is(err, session.ErrLost) {
			return err
		}
	}
}

// Now asks the servers for their time. They tell it only with a node that was made. So Now makes a node, writes to it and
// deletes it, in one transaction, which leaves nothing: below the root, or if that is refused, below a directory above the
// lock, where no contenders are. If all refuse, the clock is the one here.
func (t *Tree) Now(ctx context.Context, lock string) Clock {
	ctx, cancel := t.bounded(ctx, "the time")
	defer cancel()
	for _, dir := range []string{"/", path.Dir(lock)} {
		node := path.Join(dir, "turnstile-clock-"+rand.Text())
		var replies []zk.MultiResponse
		var begun time.Time
		err := t.do(ctx, func(s *session.Session) (err error) {
			begun = time.Now()
			replies, err = s.Multi(ctx, &zk.CreateRequest{Path: node}, &zk.SetDataRequest{Path: node}, &zk.DeleteRequest{Path: node, Version: 1})
			return err
		})
		if now := time.Now(); err == nil && len(replies) > 1 && replies[1].Stat != nil {
			// The leader's clock was read somewhere between the request and the answer.
			stamp := time.UnixMilli(replies[1].Stat.Mtime).Add(now.Sub(begun) / 2)
			return Clock{stamp, stamp.Sub(now)}
		}
	}
	return Clock{Time: time.Now()}
}

// Unread is a directory that could not be read.
type Unread struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

// Found is the result of a walk.
type Found struct {
	Locks  []*Lock // in the order of their paths, without those that nobody uses
	Jobs   []string
	Unread []Unread
	Read   int // directories that were read
}

// Walk finds the locks at a path and below it, and the jobs of package schedule. It reads so many directories at most. A
// directory of a lock is also searched for directories of other locks. ZooKeeper's own /zookeeper is left out. Directories that
// the server refuses to list, or whose list is too long, are reported, and do not end the walk. Walk fails as Read does.
func (t *Tree) Walk(ctx context.Context, from string, most int) (*Found, error) {
	found := &Found{}
	for level := []string{from}; len(level) > 0; {
		if room := most - found.Read; len(level) > room {
			found.Unread = append(found.Unread, Unread{level[room], fmt.Sprintf(
				"the list ends after %d directories, and at least %d are left. A longer PREFIX reads fewer", most, len(level)-room)})
			level = level[:room]
		}
		top, all, errs := found.Read == 0, make([]*Lock, len(level)), make([]error, len(level))
		var g errgroup.Group
		g.SetLimit(16) // locks are read at once
		for i, dir := range level {
			g.Go(func() error {
				all[i], errs[i] = t.Read(ctx, dir)
				return nil
			})
		}
		_ = g.Wait()
		found.Read += len(level)
		var next []string
		for i, err := range errs {
			switch {
			case err == nil:
				next = append(next, found.add(all[i])...)
			case top:
				return nil, err
			case errors.Is(err, zk.ErrNoNode): // it has gone since
			case errors.Is(err, zk.ErrNoAuth):
				found.Unread = append(found.Unread, Unread{level[i], "no rights to read it"})
			case errors.Is(err, session.ErrTooLong), errors.Is(err, session.ErrInvalid):
				found.Unread = append(found.Unread, Unread{level[i], err.Error()})
			default:
				return nil, err
			}
		}
		level = next
	}
	slices.SortFunc(found.Locks, func(a, b *Lock) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(found.Jobs)
	return found, nil
}

// add takes a directory, and returns those below it that can be of other locks.
func (f *Found) add(l *Lock) (below []string) {
	if len(l.Contenders) > 0 {
		f.Locks = append(f.Locks, l)
	}
	for _, name := range l.Others {
		if name == "last" { // the record of a job
			f.Jobs = append(f.Jobs, l.Path)
		}
		p := path.Join(l.Path, name)
		own := l.Kind == Curator && (name == curatorLeases || name == curatorLocks) || l.Kind == Semaphore && name == limitPin
		if !own && !IsSystem(p) {
			below = append(below, p)
		}
	}
	return below
}

// IsSystem reports whether a path is ZooKeeper's own.
func IsSystem(p string) bool { return p == "/zookeeper" || strings.HasPrefix(p, "/zookeeper/") }
