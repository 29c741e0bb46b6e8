package main

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/rwlock"
	sem "github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// timeout is every session's, so long that heartbeats are few.
const timeout = 30 * time.Second

// where is the path of a worker's lock.
func (p plan) where(worker int) string {
	if p.apart {
		return path.Join(p.path, strconv.Itoa(worker))
	}
	return p.path
}

// ours is a session of turnstile.
type ours struct{ m *session.Manager }

func connectOurs(ctx context.Context, servers string) (connection, error) {
	m, err := session.Connect(ctx, servers, session.WithTimeout(timeout), session.WithLogger(slog.New(slog.DiscardHandler)))
	return ours{m}, err
}

func (o ours) Close() error { return o.m.Close() }

func (o ours) Lock(_ context.Context, p plan, worker int) (lock, error) {
	switch p.kind {
	case mutex:
		m, err := zklock.New(o.m, p.where(worker))
		if err != nil {
			return lock{}, err
		}
		return lock{lock: m.Lock, unlock: noContext(m.Unlock), try: m.TryLock}, nil
	case rw:
		m, err := rwlock.New(o.m, p.where(worker))
		if err != nil {
			return lock{}, err
		}
		return lock{lock: m.Lock, unlock: noContext(m.Unlock), rlock: m.RLock, runlock: noContext(m.RUnlock)}, nil
	case semaphore:
		s, err := sem.New(o.m, p.where(worker), p.leases)
		if err != nil {
			return lock{}, err
		}
		return lock{lock: s.Lock, unlock: noContext(s.Unlock)}, nil
	}
	return lock{}, fmt.Errorf("no lock is a %q", p.kind)
}

func noContext(f func() error) func(context.Context) error {
	return func(context.Context) error { return f() }
}

// plain is a session of go-zookeeper alone: for its zk.Lock, and for the limits.
type plain struct{ c *zk.Conn }

type silent struct{}

func (silent) Printf(string, ...any) {}

func connectPlain(ctx context.Context, servers string) (connection, error) {
	c, err := dial(ctx, servers)
	return plain{c}, err
}

// dial returns a client once it has a session.
func dial(ctx context.Context, servers string) (*zk.Conn, error) {
	c, events, err := zk.Connect(strings.Split(servers, ","), timeout, zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return c, nil
			}
		case <-ctx.Done():
			c.Close()
			return nil, ctx.Err()
		}
	}
}

func (p plain) Close() error {
	p.c.Close()
	return nil
}

func (c plain) Lock(ctx context.Context, p plan, worker int) (lock, error) {
	acl := zk.WorldACL(zk.PermAll)
	if p.kind == mutex {
		l := zk.NewLock(c.c, p.where(worker), acl)
		return lock{lock: noContext(l.Lock), unlock: noContext(l.Unlock)}, nil
	}
	if err := makeNodes(c.c, p.path); err != nil {
		return lock{}, err
	}
	nothing := func(context.Context) error { return nil }
	switch p.kind {
	case oneWrite:
		return lock{unlock: nothing, lock: func(context.Context) error {
			_, err := c.c.Set(p.path, nil, -1)
			return err
		}}, nil
	case twoWrites:
		var made string
		create := func(context.Context) (err error) {
			made, err = c.c.Create(p.path+"/limit-", nil, zk.FlagEphemeral|zk.FlagSequence, acl)
			return err
		}
		return lock{lock: create, unlock: func(context.Context) error { return c.c.Delete(made, -1) }}, nil
	}
	return lock{}, fmt.Errorf("no limit is a %q", p.kind)
}

// makeNodes makes a path.
func makeNodes(c *zk.Conn, p string) error {
	if p == "/" {
		return nil
	}
	_, err := c.Create(p, nil, 0, zk.WorldACL(zk.PermAll))
	if err == zk.ErrNoNode {
		if err := makeNodes(c, path.Dir(p)); err != nil {
			return err
		}
		_, err = c.Create(p, nil, 0, zk.WorldACL(zk.PermAll))
	}
	if err == zk.ErrNodeExists {
		return nil
	}
	return err
}
