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
	conn, _, err := zk.Connect(strings.Split(w.servers, ","), w.timeout, zk.WithLogger(silent{}))
	return &zkLock{worker: w, path: w.paths[0], conn: conn}, err
}

func (z *zkLock) contenders(string) ([]contender, error) { return []contender{z}, nil }

type silent struct{}

func (silent) Printf(string, ...any) {}

const zkPause = 50 * time.Millisecond // before something is tried again

func (z *zkLock) acquire(ctx context.Context) (hold, error) {
	z.turn++
	data := fmt.Sprint(z.settings.worker, " ", z.life, " ", z.turn)
	lock := zk.NewLock(z.conn, z.path, zk.WorldACL(zk.PermAll))
	if err := lock.LockWithData([]byte(data)); err != nil {
		pause(ctx, zkPause)
		return nil, err
	}
	return &zkHold{z, lock, data}, nil
}

func (z *zkLock) close() error { z.conn.Close(); return nil }

type zkHold struct {
	*zkLock
	lock *zk.Lock
	data string
}

func (h *zkHold) claim() claim { return claim{} }

// held: from Lock to Unlock. There is nobody to say otherwise.
func (h *zkHold) held() bool { return true }

// token is the czxid of the lock's node, which is known by its data: zk.Lock has no token,
// and does not say which node is its own.
func (h *zkHold) token(context.Context) (int64, error) {
	names, _, err := h.conn.Children(h.path)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		data, stat, err := h.conn.Get(path.Join(h.path, name))
		if err == nil && string(data) == h.data {
			return stat.Czxid, nil
		}
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return 0, err
		}
	}
	return 0, errNoToken
}

// release does not give up: a node that stays would be in the way of the next turn for ever.
func (h *zkHold) release(context.Context) error {
	for {
		err := h.lock.Unlock()
		if err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrClosing) {
			return err
		}
		pause(context.Background(), zkPause)
	}
}
