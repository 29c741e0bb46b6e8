package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// place is a lock's path, and what can be held there at once.
type place struct {
	path     string
	capacity int
}

// all is the capacity of a read-write lock. A reader takes 1 of it, and a writer takes all.
const all = 1000

// The places of all locks. They are few, so that there is contention.
var (
	fairPlaces    = []place{{"/soak/mutex-0", 1}, {"/soak/mutex-1", 1}, {"/soak/mutex-2", 1}}
	unfairPlaces  = []place{{"/soak/unfair-0", 1}, {"/soak/unfair-1", 1}}
	rwPlaces      = []place{{"/soak/rw-0", all}, {"/soak/rw-1", all}}
	semPlaces     = []place{{"/soak/sem-0", 3}, {"/soak/sem-1", 5}}
	curatorPlaces = []place{{"/soak/curator-0", 3}}
)

// locks are the lock objects of one client, one for each place, which its workers share.
type locks struct {
	fair, unfair []*zklock.Mutex
	rw           []*rwlock.RWMutex
	sem, curator []*semaphore.Semaphore
	multi        *zklock.MultiLock
	multiPlaces  []place // what multi takes, in its order, with the weights
	multiWeights []int
}

func newLocks(m *session.Manager) (*locks, error) {
	l := &locks{}
	var errs []error
	mutexes := func(places []place, opts ...zklock.Option) (made []*zklock.Mutex) {
		for _, p := range places {
			mx, err := zklock.New(m, p.path, opts...)
			made, errs = append(made, mx), append(errs, err)
		}
		return made
	}
	semaphores := func(places []place, opts ...semaphore.Option) (made []*semaphore.Semaphore) {
		for _, p := range places {
			s, err := semaphore.New(m, p.path, p.capacity, opts...)
			made, errs = append(made, s), append(errs, err)
		}
		return made
	}
	l.fair, l.unfair = mutexes(fairPlaces), mutexes(unfairPlaces, zklock.WithUnfair())
	l.sem, l.curator = semaphores(semPlaces), semaphores(curatorPlaces, semaphore.WithCuratorLayout())
	for _, p := range rwPlaces {
		rw, err := rwlock.New(m, p.path)
		l.rw, errs = append(l.rw, rw), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("soak: %w", err)
	}
	var err error
	l.multi, err = zklock.Multi(l.sem[0], l.fair[1], l.rw[0], l.fair[0])
	l.multiPlaces = []place{semPlaces[0], fairPlaces[1], rwPlaces[0], fairPlaces[0]}
	l.multiWeights = []int{1, 1, all, 1}
	return l, err
}

// whole is a lock and as many leases as it has.
type whole struct {
	path    string
	leases  int
	acquire func(context.Context) (*queue.Lease, error)
}

// everything returns, for each place, how to take all of it.
func (l *locks) everything() []whole {
	var every []whole
	for _, mx := range append(l.fair[:len(l.fair):len(l.fair)], l.unfair...) {
		every = append(every, whole{mx.Path(), 1, mx.Acquire})
	}
	for _, rw := range l.rw {
		every = append(every, whole{rw.Path(), 1, rw.Acquire})
	}
	for i, s := range l.sem {
		every = append(every, whole{s.Path(), semPlaces[i].capacity, s.Acquire})
	}
	for i, s := range l.curator {
		every = append(every, whole{s.Path(), curatorPlaces[i].capacity, s.Acquire})
	}
	return every
}
