package locks

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/session"
)

// Unread is a directory that could not be read.
type Unread struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

// Found is the result of a walk.
type Found struct {
	Locks   []*Lock // in the order of their levels, then of their names; without those that nobody uses
	Jobs    []string
	Unread  []Unread
	Read    int      // directories that were read
	TooMany []string // directories that were not read, because of the bound
}

// Complete reports whether all directories were read.
func (f *Found) Complete() bool { return len(f.TooMany)+len(f.Unread) == 0 }

// Walk finds the locks at a path and below it, and the jobs of package schedule. It reads so many directories at most. A
// directory of a lock is also searched for directories of other locks. ZooKeeper's own /zookeeper is left out. Directories that
// the server refuses to list are reported, and do not end the walk. Nor do those below the first whose list or path is too
// long. Walk fails as Read does.
func (t *Tree) Walk(ctx context.Context, from string, most int, detail Detail) (*Found, error) {
	found := &Found{}
	for level := []string{from}; len(level) > 0 && len(found.TooMany) == 0; {
		if room := most - found.Read; len(level) > room {
			level, found.TooMany = level[:room], level[room:]
		}
		top, all, errs := found.Read == 0, make([]*Lock, len(level)), make([]error, len(level))
		g, within := errgroup.WithContext(ctx)
		g.SetLimit(parallel)
		for i, dir := range level {
			g.Go(func() error {
				all[i], errs[i] = t.Read(within, dir, detail)
				for _, goesOn := range []error{zk.ErrNoNode, zk.ErrNoAuth, session.ErrTooLong, session.ErrInvalid} {
					if errors.Is(errs[i], goesOn) && !top {
						return nil
					}
				}
				return errs[i]
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		found.Read += len(level)
		var next []string
		for i, err := range errs {
			switch {
			case errors.Is(err, zk.ErrNoNode): // it has gone since
			case errors.Is(err, zk.ErrNoAuth):
				found.Unread = append(found.Unread, Unread{level[i], "no rights to read it"})
			case err != nil:
				found.Unread = append(found.Unread, Unread{level[i], err.Error()})
			default:
				next = append(next, found.add(all[i])...)
			}
		}
		if level = next; len(found.TooMany) > 0 {
			found.TooMany = append(found.TooMany, next...)
		}
	}
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
