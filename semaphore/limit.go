package semaphore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

const (
	// pin is the child that keeps the servers from removing the directory while a limit of Resize is in force.
	pin = "limit"
	// raising begins the name of the node that stands while a limit is set without an acquisition. It is no contender,
	// and takes no number: it can be made also when the counter of the directory is used up.
	raising = "resize-"
)

// errMoved says that the limit is not the one that was to be replaced any more. The change begins again.
var errMoved = errors.New("the limit has changed")

// limit is the data of a semaphore's directory. One that somebody has written by hand, such as {"maxLeases":3}, counts
// too.
type limit struct {
	MaxLeases int `json:"maxLeases"`
	// Default says that the limit is the one that New was given. Then New must be given the same everywhere. Otherwise an
	// operator has set it.
	Default bool `json:"default,omitempty"`
	// Version is the version that the directory's data got with this limit. States before 0.1.0 read it: they take data
	// of another version for a change by hand, and then waiters replace their nodes.
	Version int32 `json:"version,omitempty"`
}

func (l limit) encode() []byte {
	data, err := json.Marshal(l)
	if err != nil {
		panic(err) // numbers and bools cannot fail to be JSON
	}
	return data
}

// limitIn returns the limit that the data of the directory says, or else the one that New was given. ours is false if the
// data is not a semaphore's.
func (s *Semaphore) limitIn(data []byte) (l limit, ours bool) {
	if err := json.Unmarshal(data, &l); err == nil && checkCount(l.MaxLeases) == nil {
		return l, true
	}
	return limit{MaxLeases: s.max, Default: true}, len(data) == 0
}

// policy returns the policy of a contender when the directory has configuration c.
func (s *Semaphore) policy(me queue.Node, c queue.Config) (queue.Policy, error) {
	l, _ := s.limitIn(c.Data)
	if l.Default && l.MaxLeases != s.max {
		return queue.Policy{}, fmt.Errorf("%w: the limit is %d leases, not %d", queue.ErrConflict, l.MaxLeases, s.max)
	}
	return queue.LeasePolicy(me, l.MaxLeases), nil
}

// checkCount returns an error for a number of leases that is below 1, or too large for the name of a node.
func checkCount(n int) error {
	if n < 1 || n > math.MaxInt32 {
		return misuse.Invalidf("%d leases: want 1 to %d", n, math.MaxInt32)
	}
	return nil
}

// Limit returns the number of leases that is in force for everybody: the one last set by [Semaphore.Resize], otherwise
// the one that [New] was given. Curator's layout stores none, so there Limit returns the latter without a request.
//
// Limit waits for the reply of a server. It fails with the error of ctx, [session.ErrClosed], or what the server refuses.
func (s *Semaphore) Limit(ctx context.Context) (int, error) {
	s.called(ctx, "semaphore: Semaphore.Limit")
	if s.curator != nil {
		return s.max, nil
	}
	most, err := s.readLimit(ctx)
	return most, s.lock.Failed("limit of", err)
}

// Resize sets the number of leases for everybody, and lets in the waiters that now fit. If there are fewer leases than
// before, no holder loses one: Resize waits in the queue, first come, first served, until it has the leases that are to
// go, and then sets the limit. A caller that holds one of these leases waits for itself. A waiter behind it that asks for
// more leases than there are fails with [session.ErrInvalid] then.
//
// The limit stays until the next Resize or [Semaphore.ResetLimit], also while the semaphore is not used. Meanwhile New may
// be given any limit, and this one counts. The directory stays too, so its sequence numbers do not start again: see
// [queue.ErrSequence].
//
// Resize returns nil when the servers have confirmed the limit. If ctx ends before that, Resize returns an error that
// matches ctx.Err() and says who was ahead if it had to wait. It leaves the queue, and the limit may have been set. Of
// several calls at the same time, one comes after the others. Other errors are:
//
//   - [session.ErrInvalid], before any I/O, for less than one lease and in Curator's layout;
//   - [queue.ErrConflict] if the directory has data that is not a semaphore's, or, for fewer leases than before, if
//     another kind of lock is in use there;
//   - [session.ErrTooManyNodes], since Resize needs a node, and [queue.ErrSequence], for fewer leases than before;
//   - [session.ErrClosed] if the manager is closed, and what the servers refuse.
func (s *Semaphore) Resize(ctx context.Context, maxLeases int) error {
	s.called(ctx, "semaphore: Semaphore.Resize")
	return s.lock.Failed("resize", s.change(ctx, limit{MaxLeases: maxLeases}))
}

// ResetLimit undoes a limit that was set with [Semaphore.Resize]. From then on the limit is the one that New was given
// for this Semaphore, and all others must be given the same. ResetLimit waits, returns and fails as Resize does. If it
// returns [queue.ErrSequence], the limit stays in force, and goes with the directory once all contenders have left.
func (s *Semaphore) ResetLimit(ctx context.Context) error {
	s.called(ctx, "semaphore: Semaphore.ResetLimit")
	return s.lock.Failed("reset the limit of", s.change(ctx, limit{MaxLeases: s.max, Default: true}))
}

// change sets the limit. If somebody else changes it meanwhile, or the session is lost, it begins again.
func (s *Semaphore) change(ctx context.Context, to limit) error {
	if s.curator != nil {
		return misuse.Invalidf("Curator's layout stores no limit")
	}
	if err := checkCount(to.MaxLeases); err != nil {
		return err
	}
	return again(ctx, s.lock.Manager, func(ctx context.Context) error {
		old, err := s.readLimit(ctx)
		switch {
		case err != nil:
			return err
		case to.MaxLeases < old:
			return s.lower(ctx, old, to)
		}
		return s.raise(ctx, to, !to.Default)
	})
}

// lower sets a limit below the present one while it holds the difference. When it is granted, those ahead have no more
// than the new limit leaves, and those behind count the difference until its node goes, which they see after the new
// limit. Others may change the limit meanwhile. As long as it is not above the old one, the difference to that is enough,
// so lower keeps its place: many changes at a time keep nobody from coming to an end.
func (s *Semaphore) lower(ctx context.Context, old int, to limit) error {
	enough := func(data []byte) error {
		now, ours := s.limitIn(data)
		switch {
		case !ours:
			return errForeign(data)
		case now.MaxLeases > old:
			return errMoved
		}
		return nil
	}
	r, kind, config := s.lock.Request(), *s.lock.Kind, *s.lock.Kind.Configuration
	config.Policy = func(me queue.Node, c queue.Config) (queue.Policy, error) {
		return queue.LeasePolicy(me, old), enough(c.Data)
	}
	kind.Configuration, r.Kind, r.Weight = &config, &kind, old-to.MaxLeases
	t, _, err := s.lock.Queue.Begin(ctx, &r, queue.Waits)
	if to.Default && errors.Is(err, queue.ErrSequence) { // the directory has to go, and its limit with it
		return share.Join(err, s.raise(ctx, limit{MaxLeases: old}, false))
	}
	if err != nil {
		return err
	}
	defer func() { left(ctx, t.Leave(ctx)) }()
	on, version := t.Session(), t.Config().Version
	for pace := rounds.NewPace(s.lock.Manager.Backoff()); ; {
		err := s.replace(ctx, on, t.Path(), version, to, !to.Default)
		if !errors.Is(err, errMoved) {
			return err
		}
		data, stat, err := on.Get(ctx, s.lock.Path)
		if errors.Is(err, zk.ErrNoNode) || t.Err() != nil { // with our node
			return errMoved
		}
		if err == nil {
			err = enough(data)
		}
		if err == nil {
			err = pace.Wait(ctx, on.Done())
		}
		if err != nil {
			return err
		}
		version = stat.Version
	}
}

// raise sets a limit that is not below the present one. That needs no lease. But it needs a node, which was there before
// the limit was read: while that stands, nobody can have made the directory anew, where the version of the data starts
// again.
func (s *Semaphore) raise(ctx context.Context, to limit, pinned bool) error {
	on, err := s.lock.Manager.Session(ctx)
	if err != nil {
		return err
	}
	node, err := on.Enter(ctx, session.NewNode{Dir: s.lock.Path, Name: raising + uuid.NewString(), Fixed: true, Directory: true})
	if err != nil {
		return err
	}
	defer func() { left(ctx, node.Remove(ctx)) }()
	now, ours := s.limitIn(node.Data)
	switch {
	case !ours:
		return errForeign(node.Data)
	case now.MaxLeases > to.MaxLeases, node.DataStat.Mzxid != node.Stat.Mzxid: // the data can be older than the node
		return errMoved
	}
	return s.replace(ctx, on, node.Path, node.DataStat.Version, to, pinned)
}

// errForeign is the error for a directory with data that is not a semaphore's.
func errForeign(data []byte) error {
	return fmt.Errorf("%w: the directory's data %.40q is not a semaphore's", queue.ErrConflict, data)
}

// left waits until a node is gone, as long as ctx lasts. That it goes is certain, so an error is no news.
func left(ctx context.Context, r *session.Removal) {
	if r == nil { // it went with its session
		return
	}
	select {
	case <-r.Done():
	case <-ctx.Done():
	}
}

// replace sets the data of the directory, which has the given version, and makes or deletes the child that pins it: all
// in one transaction, which fails unless our node stands. So what was sent can change nothing once the node has gone,
// whenever it arrives. If the reply is lost, replace sends it again: either that succeeds, or the version tells that the
// first can have no effect any more. The caller holds the node meanwhile.
func (s *Semaphore) replace(
	ctx context.Context, on *session.Session, node string, version int32, l limit, pinned bool,
) error {
	dir, child := s.lock.Path, s.lock.Path+"/"+pin
	l.Version = version + 1
	data := l.encode()
	for pace := rounds.NewPace(s.lock.Manager.Backoff()); ; {
		stat, err := on.Exists(ctx, child)
		if err != nil {
			return err
		}
		ops := []any{
			&zk.CheckVersionRequest{Path: node, Version: -1},
			&zk.SetDataRequest{Path: dir, Data: data, Version: version},
		}
		switch {
		case pinned && stat == nil:
			ops = append(ops, &zk.CreateRequest{Path: child})
		case !pinned && stat != nil:
			ops = append(ops, &zk.DeleteRequest{Path: child, Version: -1})
		}
		_, err = on.Multi(ctx, ops...)
		switch {
		case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNodeExists):
			return errMoved // by somebody else, or by what was sent first; or our node was deleted, or the pin has changed
		case !errors.Is(err, session.ErrUncertain) || ctx.Err() != nil:
			return err
		}
		if err := pace.Wait(ctx, on.Done()); err != nil {
			return err
		}
	}
}

// readLimit returns the limit in force.
func (s *Semaphore) readLimit(ctx context.Context) (most int, err error) {
	err = again(ctx, s.lock.Manager, func(ctx context.Context) error {
		on, err := s.lock.Manager.Session(ctx)
		if err != nil {
			return err
		}
		data, _, err := on.Get(ctx, s.lock.Path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		l, _ := s.limitIn(data)
		most = l.MaxLeases
		return nil
	})
	return most, err
}

// again calls f until it succeeds, or fails for another reason than that a session or a node of ours was lost on the way, or
// that somebody else has changed the limit.
func again(ctx context.Context, m *session.Manager, f func(ctx context.Context) error) error {
	ctx, waited := queue.BeginWait(ctx)
	for pace := rounds.NewPace(m.Backoff()); ; {
		err := f(ctx)
		if !errors.Is(err, errMoved) && !errors.Is(err, session.ErrLost) {
			return waited(err)
		}
		if err := pace.Wait(ctx, nil); err != nil {
			return waited(err)
		}
	}
}
