package main

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
)

// simpleLock is the lock of section 2.4 of the ZooKeeper paper, "Simple Locks". The client that has made the node holds the
// lock. The others watch the node, and all of them try again when it is gone: they are a herd. Any of them can be next, so
// a client can starve.
//
// One goroutine uses a simpleLock.
type simpleLock struct {
	m     *session.Manager
	dir   string
	waits func(bool) // is told when the client begins to wait, and when it ends

	s    *session.Session
	node *session.Node
}

const nodeName = "lock"

// Lock returns when the client has made the node, or ctx has ended.
func (l *simpleLock) Lock(ctx context.Context) error {
	for {
		err := l.try(ctx)
		switch {
		case errors.Is(err, zk.ErrNodeExists):
			err = l.wait(ctx)
			if errors.Is(err, zk.ErrNoNode) { // it has gone in the meantime
				continue
			}
		case err == nil:
			return nil
		}
		if err != nil && !errors.Is(err, session.ErrLost) { // the next session tries again
			return err
		}
	}
}

func (l *simpleLock) try(ctx context.Context) (err error) {
	if l.s, err = l.m.Session(ctx); err != nil {
		return err
	}
	l.node, err = l.s.Enter(ctx, session.NewNode{Dir: l.dir, Name: nodeName, Fixed: true})
	return err
}

// wait returns when something has happened to the node.
func (l *simpleLock) wait(ctx context.Context) error {
	_, _, watch, err := l.s.Watch(ctx, l.dir+"/"+nodeName)
	if err != nil {
		return err
	}
	l.waits(true)
	defer l.waits(false)
	select {
	case <-watch.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Err returns nil while the lock is held. It computes that when it is called.
func (l *simpleLock) Err() error { return l.s.Err() }

// Unlock removes the node for certain, and waits for that.
func (l *simpleLock) Unlock() error {
	removal := l.node.Remove(context.Background())
	<-removal.Done()
	return removal.Err()
}
