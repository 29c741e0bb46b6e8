package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
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
	pace := rounds.Pace{New: q.m.Retry()}
	for {
		config, err := readConfig(ctx, s, q.dir)
		if err != nil || len(config.Data) > 0 {
			return config, err
		}
		// What another has set meanwhile stands, and so does what a lost reply was about.
		_, err = s.Set(ctx, q.dir, kind.Config, config.Version)
		if err != nil && !errors.Is(err, zk.ErrBadVersion) && !session.Uncertain(err) {
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
	if change == nil {
		return fmt.Errorf("reconfigure %s: %w: nil function", q.dir, session.ErrInvalid)
	}
	var refusal error
	err := q.inSession(ctx, func(s *session.Session) error {
		old, err := readConfig(ctx, s, q.dir)
		if errors.Is(err, zk.ErrNoNode) {
			if err = s.MakeParents(ctx, q.dir); err == nil {
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
		_, err = s.Set(ctx, q.dir, data, old.Version)
		return again(err)
	})
	if err = errors.Join(refusal, err); err != nil {
		return fmt.Errorf("reconfigure %s: %w", q.dir, err)
	}
	return nil
}

// Pin keeps the directory, which is made if need be, also while it is empty: by a persistent
// child of this name, which must not be that of a contender. It may be there already.
// It fails as Reconfigure does, and with [session.ErrInvalid] for a bad name.
func (q *Queue) Pin(ctx context.Context, name string) error {
	q.made()
	misuse.Context(ctx, "queue: Queue.Pin")
	if _, ok := ParseNode(name); ok {
		return fmt.Errorf("queue: %w: %q is a name for contenders", session.ErrInvalid, name)
	}
	err := q.inSession(ctx, func(s *session.Session) error {
		_, err := s.Create(ctx, q.dir+"/"+name, nil, session.Persistent)
		switch {
		case errors.Is(err, zk.ErrNodeExists):
			return nil
		case errors.Is(err, zk.ErrNoNode):
			if err := s.MakeParents(ctx, q.dir); err != nil {
				return again(err)
			}
		}
		return again(err)
	})
	if err != nil {
		return fmt.Errorf("pin %s: %w", q.dir, err)
	}
	return nil
}

// Unpin takes the child away that Pin has made, if it is there. It fails as Reconfigure does.
func (q *Queue) Unpin(ctx context.Context, name string) error {
	q.made()
	misuse.Context(ctx, "queue: Queue.Unpin")
	err := q.inSession(ctx, func(s *session.Session) error {
		err := s.Delete(ctx, q.dir+"/"+name, -1)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("unpin %s: %w", q.dir, err)
	}
	return nil
}

// errAgain says that the directory has changed or vanished, or that it is not known whether a
// change was made.
var errAgain = errors.New("the directory has changed meanwhile")

func again(err error) error {
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) || session.Uncertain(err) {
		return errAgain
	}
	return err
}

// inSession calls f with the live session until it succeeds or fails for good.
func (q *Queue) inSession(ctx context.Context, f func(*session.Session) error) error {
	pace := rounds.Pace{New: q.m.Retry()}
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
