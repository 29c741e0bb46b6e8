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
	// pin is the child that keeps the directory while a limit of Resize is in force.
	pin = "limit"
	// raising begins the name of the node that stands while a limit is set without an acquisition. It takes no
	// number.
	raising = "resize-"
)

var errMoved = errors.New("the limit has changed")

type limit struct {
	MaxLeases int `json:"maxLeases"`
	// Default says that the limit is that of New. Otherwise an operator has set it.
	Default bool `json:"default,omitempty"`
	// Version is that of the data. States before 0.1.0 take data of another version for a change by hand.
	Version int32 `json:"version,omitempty"`
}

func (l limit) encode() []byte {
	data, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	return data
}

// limitIn returns the limit that the data says, or else that of New. ours is false if the data is not a semaphore's.
func (s *Semaphore) limitIn(data []byte) (l limit, ours bool) {
	if err := json.Unmarshal(data, &l); err == nil && checkCount(l.MaxLeases) == nil {
		return l, true
	}
	return limit{MaxLeases: s.max, Default: true}, len(data) == 0
}

func (s *Semaphore) policy(me queue.Node, c queue.Config) (queue.Policy, error) {
	l, _ := s.limitIn(c.Data)
	if l.Default && l.MaxLeases != s.max {
		return queue.Policy{}, fmt.Errorf("%w: the limit is %d leases, not %d", queue.ErrConflict, l.MaxLeases, s.max)
	}
	return queue.LeasePolicy(me, l.MaxLeases), nil
}

func checkCount(n int) error {
	if n < 1 || n > math.MaxInt32 {
		return misuse.Invalidf("%d leases: want 1 to %d", n, math.MaxInt32)
	}
	return nil
}

// Limit returns the number of leases that is in force for everybody: the one last set by [Semaphore.Resize],
// otherwise the one that [New] was given. Curator's layout stores none, so there it returns the latter. It fails with
// the error of ctx, [session.ErrClosed], or what the server refuses.
func (s *Semaphore) Limit(ctx context.Context) (int, error) {
	s.called(ctx, "semaphore: Semaphore.Limit")
	if s.curator != nil {
		return s.max, nil
	}
	most, err := s.readLimit(ctx)
	return most, s.lock.Failed("limit of", err)
}

// Resize sets the number of leases for everybody, and lets in the waiters that now fit. To lower it, Resize waits in
// the queue, first come, first served, until it has the leases that are to go: a caller that holds one of these waits
// for itself. A waiter that asks for more leases than there are then fails with [session.ErrInvalid].
//
// The limit stays until the next Resize or [Semaphore.ResetLimit], also while the semaphore is not used. The directory
// stays too, so its sequence numbers do not start again: see [queue.ErrSequence].
//
// If ctx ends before the servers have confirmed the limit, the error says who was ahead, and the limit may have been
// set. Other errors are:
//
//   - [session.ErrInvalid], before any I/O, for less than one lease and in Curator's layout;
//   - [queue.ErrConflict] if the directory has data that is not a semaphore's or, for fewer leases than before,
//     another kind of lock is in use there;
//   - [session.ErrTooManyNodes], since Resize needs a node, and [queue.ErrSequence], for fewer leases than before;
//   - [session.ErrClosed] if the manager is closed, and what the servers refuse.
func (s *Semaphore) Resize(ctx context.Context, maxLeases int) error {
	s.called(ctx, "semaphore: Semaphore.Resize")
	return s.lock.Failed("resize", s.change(ctx, limit{MaxLeases: maxLeases}))
}

// ResetLimit undoes [Semaphore.Resize]: the limit is the one that New was given for this Semaphore, and all others
// must be given the same. It fails as Resize does. After [queue.ErrSequence] the limit goes with the directory, once
// all contenders have left.
func (s *Semaphore) ResetLimit(ctx context.Context) error {
	s.called(ctx, "semaphore: Semaphore.ResetLimit")
	return s.lock.Failed("reset the limit of", s.change(ctx, limit{MaxLeases: s.max, Default: true}))
}

// change begins again if somebody else changes the limit meanwhile, or the session is lost.
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

// lower sets a limit below the present one while it holds the difference. When it is granted, those ahead have no
// more than the new limit leaves. Those behind count the difference until its node goes, which they see after the new
// limit. While others set limits that are not above the old one, lower keeps its place, so that many changes at a
// time come to an end.
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
		if errors.Is(err, zk.ErrNoNode) || t.Err() != nil { // the directory has gone, with our node
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

// raise sets a limit that is not below the present one. It needs no lease, but a node that was there before the limit
// was read: while that stands, nobody can make the directory anew, where the version of the data starts again.
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

func errForeign(data []byte) error {
	return fmt.Errorf("%w: the directory's data %.40q is not a semaphore's", queue.ErrConflict, data)
}

// left waits until a node is gone, as long as ctx lasts. An error is no news: the node will go.
func left(ctx context.Context, r *session.Removal) {
	if r == nil { // it went with its session
		return
	}
	select {
	case <-r.Done():
	case <-ctx.Done():
	}
}

// replace sets the data of the directory, and makes or deletes the pin, in one transaction that fails unless our node
// stands. So what was sent changes nothing once the node has gone. If the reply is lost, replace sends it again:
// either that succeeds, or the data has another version, and the first was carried out or never will be.
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
			return errMoved // by somebody else, or by what was sent first
		case !errors.Is(err, session.ErrUncertain):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		if err := pace.Wait(ctx, on.Done()); err != nil {
			return err
		}
	}
}

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

// again calls f again after a loss or a changed limit.
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
