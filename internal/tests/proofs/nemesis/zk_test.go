//go:build linux

package nemesis

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// openRival has go-zookeeper's Lock as its documentation shows it: one connection, NewLock, Lock, Unlock. Where that is
// silent it is used well: a new Lock for each turn, since one whose Unlock has failed cannot be locked again, and Unlock is
// tried again until the node is gone. Lock cannot be cancelled.
func openRival(w *worker, at string) (draws, error) {
	conn, _, err := zk.Connect(strings.Split(w.Servers, ","), w.Timeout, zk.WithLogger(silent{}))
	acquire := func(ctx context.Context) (*hold, error) {
		lock := zk.NewLock(conn, at, zk.WorldACL(zk.PermAll))
		if err := lock.Lock(); err != nil {
			pause(ctx, zkPause)
			return nil, err
		}
		// It holds from Lock to Unlock. There is nobody to say otherwise, and it has no token.
		return &hold{held: func() bool { return true }, release: func(context.Context) error { return release(lock) }}, nil
	}
	return func(*rand.Rand) acquires { return acquire }, err
}

type silent struct{}

func (silent) Printf(string, ...any) {}

const zkPause = 50 * time.Millisecond // before something is tried again

// release does not give up: a node that stays would be in the way of the next turn for ever.
func release(lock *zk.Lock) error {
	for {
		err := lock.Unlock()
		if err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrClosing) {
			return err
		}
		pause(context.Background(), zkPause)
	}
}
