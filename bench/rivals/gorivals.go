package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// keepFor is how long places are kept, if they are: for the whole row.
const keepFor = time.Minute

// ours is a session of turnstile.
type ours struct {
	m      *session.Manager
	e      *entry                        // nil: not measured
	lost   *atomic.Int64                 // sessions
	shared func() (*zklock.Mutex, error) // returns the same one each time, for all workers
	keys   func() (*zklock.Keyed, error) // so does this
}

// mostPasses is how often a lock is handed on among those that share it: as often as they want.
const mostPasses = math.MaxInt

func connectOurs(ctx context.Context, server string, p plan) (connection, error) {
	opts := []session.Option{session.WithTimeout(timeout), session.WithLogger(slog.New(slog.DiscardHandler))}
	var e *entry
	if p.turns > 1 {
		e = &entry{}
		opts = append(opts, session.WithTrace(e.trace()))
	}
	m, err := session.Connect(ctx, server, opts...)
	if err != nil {
		return nil, err
	}
	o := ours{m: m, e: e, lost: new(atomic.Int64), shared: sync.OnceValues(func() (*zklock.Mutex, error) {
		return zklock.New(m, p.path, zklock.WithLocalHandover(mostPasses))
	}), keys: sync.OnceValues(func() (*zklock.Keyed, error) { return zklock.NewKeyed(m, p.path) })}
	m.Subscribe(func(c session.Change) {
		if c.To == session.Lost {
			o.lost.Add(1)
		}
	})
	return o, nil
}

func (o ours) Close() error { return o.m.Close() }

func (o ours) Lock(ctx context.Context, p plan, worker int) (lock, error) {
	switch p.kind {
	case mutex:
		return o.mutex(p, p.where(worker))
	case own:
		return mostlyOwn(p, worker, func(where string) (lock, error) { return o.mutex(p, where) }), nil
	case keyed:
		k, err := o.keys()
		return anyKey(p, worker, func(key string) (lock, error) {
			return lock{
				lock:   func(ctx context.Context) error { return k.Lock(ctx, key) },
				unlock: noContext(func() error { return k.Unlock(key) }),
			}, nil
		}), err
	case rw:
		var opts []rwlock.Option
		if p.lazy {
			opts = append(opts, rwlock.WithLazyRelease(keepFor))
		}
		m, err := rwlock.New(o.m, p.where(worker), opts...)
		if err != nil {
			return lock{}, err
		}
		return lock{lock: m.Lock, unlock: noContext(m.Unlock), rlock: m.RLock, runlock: noContext(m.RUnlock)}, nil
	case several:
		var all []zklock.ContextLocker
		for i := range p.locks {
			m, err := zklock.New(o.m, path.Join(p.path, strconv.Itoa(i)))
			if err != nil {
				return lock{}, err
			}
			all = append(all, m)
		}
		m, err := zklock.Multi(all...)
		if err != nil {
			return lock{}, err
		}
		return lock{lock: m.Lock, unlock: noContext(m.Unlock)}, nil
	case semaphore:
		s, err := sem.New(o.m, p.where(worker), p.leases)
		if err != nil {
			return lock{}, err
		}
		return lock{lock: s.Lock, unlock: noContext(s.Unlock)}, nil
	case twoWrites:
		return o.twoWrites(ctx, p)
	}
	return lock{}, fmt.Errorf("no lock is a %q", p.kind)
}

func (o ours) mutex(p plan, where string) (lock, error) {
	newMutex := o.shared
	if !p.shared {
		var opts []zklock.Option
		if p.lazy {
			opts = append(opts, zklock.WithLazyRelease(keepFor))
		}
		if p.async {
			opts = append(opts, zklock.WithAsyncRelease())
		}
		newMutex = func() (*zklock.Mutex, error) { return zklock.New(o.m, where, opts...) }
	}
	m, err := newMutex()
	if err != nil {
		return lock{}, err
	}
	l := lock{lock: m.Lock, unlock: noContext(m.Unlock), try: m.TryLock}
	if o.e != nil {
		l.entered = o.e.last
	}
	return l, nil
}

// twoWrites creates a node and deletes it, as that of plain does.
func (o ours) twoWrites(ctx context.Context, p plan) (lock, error) {
	s, err := o.m.Session(ctx)
	if err != nil {
		return lock{}, err
	}
	directory := func(p string) error {
		_, err := s.Create(ctx, p, nil, session.Persistent)
		return err
	}
	if err := makeNodes(directory, p.path); err != nil {
		return lock{}, err
	}
	var made string
	create := func(ctx context.Context) (err error) {
		made, err = s.Create(ctx, p.path+"/limit-", nil, session.PersistentSequential)
		return err
	}
	return lock{lock: create, unlock: func(ctx context.Context) error { return s.Delete(ctx, made, -1) }}, nil
}

func noContext(f func() error) func(context.Context) error {
	return func(context.Context) error { return f() }
}

// plain is a session of go-zookeeper alone: for its zk.Lock, and for the limits.
type plain struct {
	c    *zk.Conn
	lost *atomic.Int64 // sessions
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func connectPlain(ctx context.Context, server string, _ plan) (connection, error) {
	var lost atomic.Int64
	c, err := dial(ctx, server, func(e zk.Event) {
		if e.State == zk.StateExpired {
			lost.Add(1)
		}
	})
	if err != nil {
		return nil, err
	}
	return plain{c, &lost}, nil
}

// dial returns a client once it has a session. It calls onEvent, if that is not nil, at each event.
func dial(ctx context.Context, servers string, onEvent func(zk.Event)) (*zk.Conn, error) {
	c, events, err := zk.Connect(strings.Split(servers, ","), timeout, zk.WithLogger(silent{}), zk.WithEventCallback(onEvent))
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
	switch p.kind {
	case mutex:
		return c.mutex(p.where(worker)), nil
	case own:
		return mostlyOwn(p, worker, func(where string) (lock, error) { return c.mutex(where), nil }), nil
	case keyed:
		return anyKey(p, worker, func(key string) (lock, error) { return c.mutex(path.Join(p.path, key)), nil }), nil
	case several:
		return c.several(p), nil
	}
	if err := c.makeNodes(p.path); err != nil {
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
			made, err = c.c.Create(p.path+"/limit-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
			return err
		}
		return lock{lock: create, unlock: func(context.Context) error { return c.c.Delete(made, -1) }}, nil
	}
	return lock{}, fmt.Errorf("no limit is a %q", p.kind)
}

func (c plain) mutex(where string) lock {
	l := zk.NewLock(c.c, where, zk.WorldACL(zk.PermAll))
	return lock{lock: noContext(l.Lock), unlock: noContext(l.Unlock)}
}

// several takes one zk.Lock after another, as a program has to that wants several.
func (c plain) several(p plan) lock {
	all := make([]*zk.Lock, p.locks)
	for i := range all {
		all[i] = zk.NewLock(c.c, path.Join(p.path, strconv.Itoa(i)), zk.WorldACL(zk.PermAll))
	}
	each := func(f func(*zk.Lock) error) func(context.Context) error {
		return func(context.Context) error {
			for _, l := range all {
				if err := f(l); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return lock{lock: each((*zk.Lock).Lock), unlock: each((*zk.Lock).Unlock)}
}

func (c plain) makeNodes(p string) error {
	return makeNodes(func(p string) error {
		_, err := c.c.Create(p, nil, 0, zk.WorldACL(zk.PermAll))
		return err
	}, p)
}

// makeNodes makes a path.
func makeNodes(create func(string) error, p string) error {
	if p == "/" {
		return nil
	}
	err := create(p)
	if errors.Is(err, zk.ErrNoNode) {
		if err := makeNodes(create, path.Dir(p)); err != nil {
			return err
		}
		err = create(p)
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}
