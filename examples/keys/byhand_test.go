package main

import (
	"context"
	"sync"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// byHand is a Keyed that has Do alone. It forgets a Mutex with the last call, and so loses each place that the Mutex
// keeps. With Lock and Unlock it would forget locks that are held.
type byHand struct {
	m    *session.Manager
	dir  string
	opts []zklock.Option

	mu  sync.Mutex
	all map[string]*shared
}

type shared struct {
	*zklock.Mutex
	users int
}

// Do calls f while it holds the lock of a key.
func (b *byHand) Do(ctx context.Context, key string, f func(context.Context) error) error {
	lock, err := b.enter(key)
	if err != nil {
		return err
	}
	defer b.leave(key)
	return lock.Do(ctx, f)
}

func (b *byHand) enter(key string) (*zklock.Mutex, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all[key] == nil {
		lock, err := zklock.New(b.m, b.dir+"/"+zklock.EscapePath(key), b.opts...)
		if err != nil {
			return nil, err
		}
		b.all[key] = &shared{Mutex: lock}
	}
	b.all[key].users++
	return b.all[key].Mutex, nil
}

func (b *byHand) leave(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all[key].users--; b.all[key].users == 0 {
		delete(b.all, key)
	}
}
