package place

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/maxwait"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/kinds"
)

// readConfig reads the configuration of a directory.
func readConfig(ctx context.Context, s *core.Session, dir string) (kinds.Config, error) {
	data, stat, err := s.Get(ctx, dir)
	if err != nil {
		return kinds.Config{}, err
	}
	return kinds.Config{Data: data, Changed: stat.Mzxid, Version: stat.Version}, nil
}

// configIn returns the directory's configuration. If the directory has no data, configIn sets that
// of the kind: the first contender sets it for all.
func (q *Queue) configIn(ctx context.Context, s *core.Session, kind *kinds.Kind) (kinds.Config, error) {
	pace := q.newPace()
	for {
		c, err := readConfig(ctx, s, q.dir)
		if err != nil || len(c.Data) > 0 {
			return c, err
		}
		// If another contender has set the data first, or the reply was lost, read it again.
		_, err = s.Set(ctx, q.dir, kind.Configuration.Config, c.Version)
		if err != nil && !errors.Is(err, zk.ErrBadVersion) && !core.Uncertain(err) {
			return kinds.Config{}, err
		}
		if err := pace.Wait(ctx, s.Done()); err != nil {
			return kinds.Config{}, err
		}
		if err := s.Err(); err != nil {
			return kinds.Config{}, err
		}
	}
}

// ReadConfig returns the configuration of the directory, or the zero value if there is no directory.
func (q *Queue) ReadConfig(ctx context.Context) (kinds.Config, error) {
	var c kinds.Config
	err := q.inSession(ctx, q.newPace(), func(ctx context.Context, s *core.Session) (err error) {
		c, err = readConfig(ctx, s, q.dir)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		return err
	})
	if err != nil {
		return kinds.Config{}, Failed("read the configuration of", q.dir, err)
	}
	return c, nil
}

// Reconfigure replaces the data of the directory, and creates or deletes the child that pins it: see
// Reconfigure of package queue. It repeats the transaction until nobody has changed the directory in between.
func (q *Queue) Reconfigure(
	ctx context.Context, pin string, keep bool, change func(old kinds.Config) ([]byte, error),
) error {
	if err := checkPin(pin); err != nil {
		return Failed("reconfigure", q.dir, err)
	}
	if change == nil {
		return Failed("reconfigure", q.dir, fmt.Errorf("%w: nil function", core.ErrInvalid))
	}
	var refusal error
	err := q.inSession(ctx, q.newPace(), func(ctx context.Context, s *core.Session) error {
		old, err := readConfig(ctx, s, q.dir)
		if errors.Is(err, zk.ErrNoNode) {
			var made bool
			if made, err = s.MakeDirectory(ctx, q.dir); made {
				s.GiveBack(q.dir) // that does nothing if data was written into it by then
			}
			if err == nil {
				old, err = readConfig(ctx, s, q.dir)
			}
		}
		if err != nil {
			return again(err)
		}
		var data []byte
		if data, refusal = change(old); refusal != nil {
			return nil
		}
		return again(q.setPinned(ctx, s, data, old.Version, path.Join(q.dir, pin), keep))
	})
	if err = errors.Join(refusal, err); err != nil {
		return Failed("reconfigure", q.dir, err)
	}
	return nil
}

// checkPin returns an error if a child of this name cannot pin a directory.
func checkPin(pin string) error {
	if _, ok := kinds.ParseNode(pin); ok {
		return misuse.Invalidf("%q is the name of a contender", pin)
	}
	if pin == "" || strings.Contains(pin, "/") {
		return misuse.Invalidf("%q is not the name of a child", pin)
	}
	return misuse.ValidatePath("/" + pin)
}

// setPinned sets the data of the directory if it still has the given version, and creates or deletes
// the child that pins it.
func (q *Queue) setPinned(ctx context.Context, s *core.Session, data []byte, version int32, child string, keep bool) error {
	stat, err := s.Exists(ctx, child)
	if err != nil {
		return err
	}
	ops := []any{&zk.SetDataRequest{Path: q.dir, Data: data, Version: version}}
	switch {
	case keep && stat == nil:
		ops = append(ops, &zk.CreateRequest{Path: child})
	case keep:
		ops = append(ops, &zk.CheckVersionRequest{Path: child, Version: -1})
	case stat != nil:
		ops = append(ops, &zk.DeleteRequest{Path: child, Version: -1})
	}
	_, err = s.Multi(ctx, ops...)
	return err
}

// again returns errMoved if the directory has changed or vanished, or if the reply to a change was lost.
func again(err error) error {
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists) || core.Uncertain(err) {
		return errMoved
	}
	return err
}

// inSession calls f with the live session, until it returns nil or an error other than errMoved or
// the loss of the session. It waits for as long as ctx allows: see package maxwait.
func (q *Queue) inSession(ctx context.Context, pace *rounds.Pace, f func(context.Context, *core.Session) error) error {
	ctx, end := maxwait.Begin(ctx)
	for {
		s, err := q.m.Session(ctx)
		if err != nil {
			return end(err)
		}
		if err = f(ctx, s); !errors.Is(err, errMoved) && !errors.Is(err, core.ErrLost) {
			return end(err)
		}
		if err := pace.Wait(ctx, s.Done()); err != nil {
			return end(err)
		}
	}
}
