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
	for level, top := []string{from}, true; len(level) > 0; top = false {
		if room := most - found.Read; len(level) > room {
			found.TooMany = level[room:]
			level = level[:room]
		}
		next, err := t.walkLevel(ctx, level, top, detail, found)
		if err != nil {
			return nil, err
		}
		found.Read += len(level)
		if len(found.TooMany) > 0 {
			found.TooMany = append(found.TooMany, next...)
			break
		}
		level = next
	}
	return found, nil
}

// walkLevel reads directories, and returns those below them.
func (t *Tree) walkLevel(ctx context.Context, dirs []string, top bool, detail Detail, found *Found) (next []string, err error) {
	all := make([]*Lock, len(dirs))
	errs := make([]error, len(dirs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, dir := range dirs {
		g.Go(func() error {
			all[i], errs[i] = t.Read(ctx, dir, detail)
			tooLong := errors.Is(errs[i], session.ErrTooLong) || errors.Is(errs[i], session.ErrInvalid)
			switch {
			case !top && (errors.Is(errs[i], zk.ErrNoAuth) || tooLong):
				return nil
			case errors.Is(errs[i], zk.ErrNoNode) && !top:
				errs[i] = nil // it has gone since
				return nil
			}
			return errs[i]
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, l := range all {
		switch {
		case errors.Is(errs[i], zk.ErrNoAuth):
			found.Unread = append(found.Unread, Unread{dirs[i], "no rights to read it"})
		case errors.Is(errs[i], session.ErrTooLong):
			found.Unread = append(found.Unread, Unread{dirs[i], "the list of its children is too long: turnstile reads at most 64 MiB"})
		case errs[i] != nil:
			found.Unread = append(found.Unread, Unread{dirs[i], errs[i].Error()})
		case l == nil:
		default:
			if len(l.Contenders) > 0 {
				found.Locks = append(found.Locks, l)
			}
			for _, name := range l.Others {
				p := path.Join(l.Path, name)
				own := l.Kind == Curator && (name == curatorLeases || name == curatorLocks) || l.Kind == Semaphore && name == limitPin
				if !own && !IsSystem(p) {
					next = append(next, p)
				}
				if name == "last" { // the record of a job
					found.Jobs = append(found.Jobs, l.Path)
				}
			}
		}
	}
	return next, nil
}

// IsSystem reports whether a path is ZooKeeper's own.
func IsSystem(p string) bool { return p == "/zookeeper" || strings.HasPrefix(p, "/zookeeper/") }
