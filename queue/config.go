package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
)

// configIn returns the directory's data, by which a kind with a configuration decides. A
// directory that has none is given the kind's: whoever comes first sets it for all.
func (q *Queue) configIn(ctx context.Context, s *session.Session, kind *Kind) ([]byte, *zk.Stat, error) {
	for {
		data, stat, err := s.Get(ctx, q.dir)
		if err != nil || len(data) > 0 {
			return data, stat, err
		}
		// What another has set meanwhile stands, and so does what a lost reply was about.
		_, err = s.Set(ctx, q.dir, kind.Config, stat.Version)
		if err != nil && !errors.Is(err, zk.ErrBadVersion) && !session.Uncertain(err) {
			return nil, nil, err
		}
		if err := s.Err(); err != nil {
			return nil, nil, err
		}
	}
}

// Reconfigure replaces the data of the directory, which is made if need be, by what change
// makes of it; those who wait under a kind with a configuration look again. change may be
// called several times; its error ends the call and is returned. It fails with ctx's error,
// [session.ErrClosed] or what the server refuses.
func (q *Queue) Reconfigure(ctx context.Context, change func(old []byte) ([]byte, error)) error {
	for {
		s, err := q.m.Session(ctx)
		if err == nil {
			err = q.reconfigureIn(ctx, s, change)
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil, errors.Is(err, session.ErrClosed):
		case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode), session.Uncertain(err):
			continue // it changed, or vanished, or it is not known whether the change was made
		}
		return fmt.Errorf("reconfigure %s: %w", q.dir, err)
	}
}

func (q *Queue) reconfigureIn(ctx context.Context, s *session.Session, change func([]byte) ([]byte, error)) error {
	data, stat, err := s.Get(ctx, q.dir)
	if errors.Is(err, zk.ErrNoNode) {
		if err = s.MakeParents(ctx, q.dir); err == nil {
			data, stat, err = s.Get(ctx, q.dir)
		}
	}
	if err != nil {
		return err
	}
	if data, err = change(data); err != nil {
		return err
	}
	_, err = s.Set(ctx, q.dir, data, stat.Version)
	return err
}
