//go:build linux

package nemesis

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// zkLock is go-zookeeper's Lock as its documentation shows it: one connection, NewLock,
// Lock, Unlock. Where that is silent it is used well: a new Lock for each turn, since one
// whose Unlock has failed cannot be locked again, and Unlock is tried again until the node
// is gone. Lock cannot be cancelled.
type zkLock struct {
	*worker
	path string
	conn *zk.Conn
	turn int
}

func newZK(w *worker) (client, error) {
	conn, _, err := zk.Connect(strings.Split(w.Servers, ","), w.Timeout, zk.WithLogger(silent{}))
	return &zkLock{worker: w, path: w.Paths[0], conn: conn}, err
}

func (z *zkLock) contenders(string) ([]acquires, error) { return []acquires{z.acquire}, nil }

type silent struct{}

func (silent) Printf(string, ...any) {}

const zkPause = 50 * time.Millisecond // before something is tried again

func (z *zkLock) acquire(ctx context.Context) (*hold, error) {
	z.turn++
	data := fmt.Sprint(z.Worker, " ", z.Life, " ", z.turn)
	lock := zk.NewLock(z.conn, z.path, zk.WorldACL(zk.PermAll))
	if err := lock.LockWithData([]byte(data)); err != nil {
		pause(ctx, zkPause)
		return nil, err
	}
	// It holds from Lock to Unlock. There is nobody to say otherwise.
	return &hold{
		held:    func() bool { return true },
		token:   func(context.Context) (int64, error) { return z.token(data) },
		release: func(context.Context) error { return release(lock) },
	}, nil
}

func (z *zkLock) close() error { z.conn.Close(); return nil }

// token is the czxid of the lock's node, which is known by its data: zk.Lock has no token,
// and does not say which node is its own.
func (z *zkLock) token(of string) (int64, error) {
	names, _, err := z.conn.Children(z.path)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		data, stat, err := z.conn.Get(path.Join(z.path, name))
		if err == nil && string(data) == of {
			return stat.Czxid, nil
		}
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return 0, err
		}
	}
	return 0, errNoToken
}

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
