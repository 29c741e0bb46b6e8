package main

import (
	"context"
	"errors"
	"path"

	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// etcdClient is one client of etcd. Its mutex belongs to a lease, which etcd calls a session. Two
// workers of one session would be one holder, so each worker has a session of its own.
type etcdClient struct{ c *clientv3.Client }

func dialEtcd(server string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{server}, DialTimeout: timeout, Logger: zap.NewNop()})
}

func connectEtcd(ctx context.Context, server string, _ plan) (connection, error) {
	c, err := dialEtcd(server)
	if err != nil {
		return nil, err
	}
	if _, err := c.Get(ctx, "connected"); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return etcdClient{c}, nil
}

func (e etcdClient) Close() error { return e.c.Close() }

func (e etcdClient) Lock(ctx context.Context, p plan, worker int) (lock, error) {
	// The session is not bound to ctx, which ends with the call. It ends with the client.
	s, err := concurrency.NewSession(e.c, concurrency.WithTTL(int(timeout.Seconds())))
	if err != nil {
		return lock{}, err
	}
	m := concurrency.NewMutex(s, p.where(worker))
	try := func(ctx context.Context) (bool, error) {
		err := m.TryLock(ctx)
		if errors.Is(err, concurrency.ErrLocked) {
			return false, nil
		}
		return err == nil, err
	}
	return lock{lock: m.Lock, unlock: m.Unlock, try: try}, nil
}

// etcdContenders counts the keys of a mutex.
func etcdContenders(ctx context.Context, c *clientv3.Client, p string) (int, error) {
	r, err := c.Get(ctx, path.Clean(p)+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return int(r.Count), nil
}
