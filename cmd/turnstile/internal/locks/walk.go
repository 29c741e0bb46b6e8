package locks

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/session"
)

// Bounds limit a walk.
type Bounds struct {
	Depth int // levels below the path
	Nodes int // directories to read
}

// Unread is a directory that could not be read.
type Unread struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

// Found is the result of a walk.
type Found struct {
	Locks  []*Lock // in the order of their levels, then of their names; idle ones too
	Unread []Unread
	Read   int // directories that were read
	// TooDeep and TooMany are directories that were not read, because of the bounds.
	TooDeep, TooMany []string
}

// Complete reports whether all directories were read.
func (f *Found) Complete() bool { return len(f.TooDeep)+len(f.TooMany)+len(f.Unread) == 0 }

// Walk finds the locks at a path and below it. A directory of a lock is also searched for directories of
// other locks. ZooKeeper's own /zookeeper is left out. Directories that the server refuses to list are
// reported, and do not end the walk. Nor do those below the first whose list or path is too long. Walk fails as Read does.
func (t *Tree) Walk(ctx context.Context, from string, b Bounds) (*Found, error) {
	return t.walk(ctx, from, b, Holders)
}

// WalkAll is Walk, and reads the nodes of all contenders.
func (t *Tree) WalkAll(ctx context.Context, from string, b Bounds) (*Found, error) {
	return t.walk(ctx, from, b, All)
}

func (t *Tree) walk(ctx context.Context, from string, b Bounds, detail Detail) (*Found, error) {
	found, err := t.walkLevels(ctx, from, b, detail)
	if err != nil {
		return nil, err
	}
	found.Locks = withoutGates(found.Locks)
	return found, nil
}

func (t *Tree) walkLevels(ctx context.Context, from string, b Bounds, detail Detail) (*Found, error) {
	found := &Found{}
	level := []string{from}
	for depth := 0; len(level) > 0; depth++ {
		if depth > b.Depth {
			found.TooDeep = level
			return found, nil
		}
		if room := b.Nodes - found.Read; len(level) > room {
			found.TooMany = level[room:]
			level = level[:room]
		}
		next, err := t.walkLevel(ctx, level, depth == 0, detail, found)
		if err != nil {
			return nil, err
		}
		found.Read += len(level)
		if len(found.TooMany) > 0 {
			found.TooMany = append(found.TooMany, next...)
			return found, nil
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
			switch {
			case !top && (errors.Is(errs[i], zk.ErrNoAuth) || tooLong(errs[i])):
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
		if errs[i] != nil {
			found.Unread = append(found.Unread, Unread{dirs[i], Plain(errs[i])})
			continue
		}
		if l == nil {
			continue
		}
		if l.Kind != None || l.Idle() {
			found.Locks = append(found.Locks, l)
		}
		next = append(next, l.below()...)
	}
	return next, nil
}

// tooLong reports whether a list of children is too long, or a path for the library.
func tooLong(err error) bool {
	return errors.Is(err, session.ErrTooLong) || errors.Is(err, session.ErrInvalid)
}

// below returns the directories to search below that of a lock, or of none.
func (l *Lock) below() []string {
	var out []string
	for _, name := range l.Others {
		p := path.Join(l.Path, name)
		own := l.Kind == Curator && (name == curatorLeases || name == curatorLocks) || l.Kind == Semaphore && name == limitPin
		if !own && !IsSystem(p) {
			out = append(out, p)
		}
	}
	return out
}

// IsSystem reports whether a path is ZooKeeper's own.
func IsSystem(p string) bool { return p == "/zookeeper" || strings.HasPrefix(p, "/zookeeper/") }

// Plain returns a refusal or a failure in plain words.
func Plain(err error) string {
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return "no rights to read it"
	case errors.Is(err, zk.ErrNoNode):
		return "there is no such node"
	case errors.Is(err, ErrUnreachable):
		return ErrUnreachable.Error()
	case errors.Is(err, session.ErrTooLong):
		return "the list of its children is too long: turnstile reads at most 64 MiB"
	}
	return err.Error()
}

// Check returns an error if the bounds are not positive.
func (b Bounds) Check() error {
	if b.Depth < 0 {
		return fmt.Errorf("--depth %d is negative", b.Depth)
	}
	if b.Nodes < 1 {
		return fmt.Errorf("--max %d is not positive", b.Nodes)
	}
	return nil
}
