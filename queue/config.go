package queue

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
)

// Config is the data of a queue's directory, by which a [Kind] with Configured decides.
type Config struct {
	Data    []byte
	Changed int64 // the transaction (zxid) that set it
	Version int32 // how often it was set since the directory was made
}

// readConfig returns the configuration of a directory.
func readConfig(ctx context.Context, s *session.Session, dir string) (Config, error) {
	data, stat, err := s.Get(ctx, dir)
	if err != nil {
		return Config{}, err
	}
	return Config{data, stat.Mzxid, stat.Version}, nil
}

// configIn returns the directory's configuration. A directory that has none is given the
// kind's: the first contender sets it for all.
func (q *Queue) configIn(ctx context.Context, s *session.Session, kind *Kind) (Config, error) {
	pace := rounds.Pace{New: plumbing.OfManager(q.m).Retry()}
	for {
		config, err := readConfig(ctx, s, q.dir)
		if err != nil || len(config.Data) > 0 {
			return config, err
		}
		// What another has set meanwhile stands, and so does what a lost reply was about.
		_, err = s.Set(ctx, q.dir, kind.Config, config.Version)
		if err != nil && !errors.Is(err, zk.ErrBadVersion) && !plumbing.Uncertain(err) {
			return Config{}, err
		}
		if err := pace.Wait(ctx, s.Done()); err != nil {
			return Config{}, err
		}
		if err := s.Err(); err != nil {
			return Config{}, err
		}
	}
}

// Config returns the configuration of the directory, which is the zero Config where there is
// no directory. It fails with ctx's error, [session.ErrClosed] or what the server refuses.
func (q *Queue) Config(ctx context.Context) (Config, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Config")
	var config Config
	err := q.inSession(ctx, func(s *session.Session) (err error) {
		config, err = readConfig(ctx, s, q.dir)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		return err
	})
	if err != nil {
		return Config{}, fmt.Errorf("read the configuration of %s: %w", q.dir, err)
	}
	return config, nil
}

// Reconfigure replaces the data of the directory, which is made if need be, by what change
// makes of it; contenders that wait under a kind with a configuration look again. change may
// be called several times; its error ends the call and is returned, whatever error it is. It
// fails with ctx's error, [session.ErrClosed] or what the server refuses.
func (q *Queue) Reconfigure(ctx context.Context, change func(old Config) ([]byte, error)) error {
	q.made()
	misuse.Context(ctx, "queue: Queue.Reconfigure")
	return q.reconfigure(ctx, change, func(ctx context.Context, s *session.Session, data []byte, version int32) error {
		_, err := s.Set(ctx, q.dir, data, version)
		return err
	})
}

// ReconfigurePinned is Reconfigure that also decides, in the same transaction, whether the
// directory stays while it is empty: with keep it has a persistent child of the name pin, and
// without it has none. [session.ErrInvalid] says that pin is a name for contenders.
func (q *Queue) ReconfigurePinned(ctx context.Context, pin string, keep bool, change func(old Config) ([]byte, error)) error {
	q.made()
	misuse.Context(ctx, "queue: Queue.ReconfigurePinned")
	if _, ok := ParseNode(pin); ok {
		return fmt.Errorf("queue: %w: %q is a name for contenders", session.ErrInvalid, pin)
	}
	child := path.Join(q.dir, pin)
	return q.reconfigure(ctx, change, func(ctx context.Context, s *session.Session, data []byte, version int32) error {
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
	})
}

// reconfigure reads the data, and has set replace it, until nobody has changed it between.
func (q *Queue) reconfigure(ctx context.Context, change func(old Config) ([]byte, error),
	set func(ctx context.Context, s *session.Session, data []byte, version int32) error) error {
	if change == nil {
		return fmt.Errorf("reconfigure %s: %w: nil function", q.dir, session.ErrInvalid)
	}
	var refusal error
	err := q.inSession(ctx, func(s *session.Session) error {
		old, err := readConfig(ctx, s, q.dir)
		if errors.Is(err, zk.ErrNoNode) {
			if err = plumbing.Of(s).MakeParents(ctx, q.dir); err == nil {
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
		return again(set(ctx, s, data, old.Version))
	})
	if err = errors.Join(refusal, err); err != nil {
		return fmt.Errorf("reconfigure %s: %w", q.dir, err)
	}
	return nil
}

// errAgain says that the directory has changed or vanished, or that it is not known whether a
// change was made.
var errAgain = errors.New("the directory has changed meanwhile")

func again(err error) error {
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists) || plumbing.Uncertain(err) {
		return errAgain
	}
	return err
}

// inSession calls f with the live session until it succeeds or fails for good.
func (q *Queue) inSession(ctx context.Context, f func(*session.Session) error) error {
	pace := rounds.Pace{New: plumbing.OfManager(q.m).Retry()}
	for {
		s, err := q.m.Session(ctx)
		if err != nil {
			return err
		}
		err = f(s)
		switch {
		case errors.Is(err, session.ErrClosed):
			return err
		case errors.Is(err, errAgain), errors.Is(err, session.ErrLost):
		default:
			return err
		}
		if err := pace.Wait(ctx, s.Done()); err != nil {
			return err
		}
	}
}
