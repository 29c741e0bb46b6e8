package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/referee"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// all is the capacity of a read-write lock. A reader takes 1 of it, and a writer takes all.
const all = 1000

// The places of all locks. They are few, so that there is contention.
var (
	fairPlaces    = []referee.Place{{Path: "/soak/mutex-0", Capacity: 1}, {Path: "/soak/mutex-1", Capacity: 1}, {Path: "/soak/mutex-2", Capacity: 1}}
	rwPlaces      = []referee.Place{{Path: "/soak/rw-0", Capacity: all}, {Path: "/soak/rw-1", Capacity: all}}
	semPlaces     = []referee.Place{{Path: "/soak/sem-0", Capacity: 3}, {Path: "/soak/sem-1", Capacity: 5}}
	curatorPlaces = []referee.Place{{Path: "/soak/curator-0", Capacity: 3}}

	// handedPlaces are what workers of a client hand on among themselves. At the second there are plain locks, too.
	handedPlaces = []referee.Place{{Path: "/soak/handed-0", Capacity: 1}, fairPlaces[0]}

	// electionPlaces are where candidates lead. At the second there are plain locks, too.
	electionPlaces = []referee.Place{{Path: "/soak/election-0", Capacity: 1}, fairPlaces[1]}

	// keptPlaces are kept after a release. At the second of each kind there are plain locks, too.
	keptPlaces   = []referee.Place{{Path: "/soak/kept-0", Capacity: 1}, fairPlaces[2]}
	keptRWPlaces = []referee.Place{{Path: "/soak/kept-rw-0", Capacity: all}, rwPlaces[1]}
)

// The first keys are in use all the time. The others are of one cycle, so that a Keyed which does not forget them grows.
const (
	contendedKeys = 3
	allKeys       = 35
)

func key(cycle, i int) string {
	if i < contendedKeys {
		return fmt.Sprint(i)
	}
	return fmt.Sprint(cycle, "/", i)
}

// keepFor is how long. A session timeout, which bounds it, is longer.
const keepFor = 300 * time.Millisecond

// handovers is how often a place is handed on in a row.
const handovers = 3

// locks are the lock objects of one client, one for each place, which its workers share.
type locks struct {
	fair         []*zklock.Mutex
	electoral    []*zklock.Mutex // at the places of elections
	handed, kept []*zklock.Mutex
	keyed        *zklock.Keyed
	rwKeyed      *rwlock.Keyed
	rw, keptRW   []*rwlock.RWMutex
	sem, curator []*semaphore.Semaphore
	multi        *zklock.MultiLock
	multiPlaces  []referee.Place // what multi takes, in its order, with the weights
	multiWeights []int
}

func newLocks(m *session.Manager) (*locks, error) {
	l := &locks{}
	var errs []error
	mutexes := func(places []referee.Place, opts ...zklock.Option) (made []*zklock.Mutex) {
		for _, p := range places {
			mx, err := zklock.New(m, p.Path, opts...)
			made, errs = append(made, mx), append(errs, err)
		}
		return made
	}
	semaphores := func(places []referee.Place, opts ...semaphore.Option) (made []*semaphore.Semaphore) {
		for _, p := range places {
			s, err := semaphore.New(m, p.Path, p.Capacity, opts...)
			made, errs = append(made, s), append(errs, err)
		}
		return made
	}
	rwlocks := func(places []referee.Place, opts ...rwlock.Option) (made []*rwlock.RWMutex) {
		for _, p := range places {
			rw, err := rwlock.New(m, p.Path, opts...)
			made, errs = append(made, rw), append(errs, err)
		}
		return made
	}
	l.fair = mutexes(fairPlaces)
	l.electoral = mutexes(electionPlaces)
	l.handed = mutexes(handedPlaces, zklock.WithLocalHandover(handovers), zklock.WithAsyncRelease())
	l.kept = mutexes(keptPlaces, zklock.WithLazyRelease(keepFor))
	l.rw, l.keptRW = rwlocks(rwPlaces), rwlocks(keptRWPlaces, rwlock.WithLazyRelease(keepFor))
	l.sem = semaphores(semPlaces, semaphore.WithAsyncRelease())
	l.curator = semaphores(curatorPlaces, semaphore.WithCuratorLayout())
	var err error
	l.keyed, err = zklock.NewKeyed(m, "/soak/keys", zklock.WithLocalHandover(handovers), zklock.WithLazyRelease(keepFor))
	errs = append(errs, err)
	l.rwKeyed, err = rwlock.NewKeyed(m, "/soak/rw-keys", rwlock.WithLazyRelease(keepFor))
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("soak: %w", err)
	}
	l.multi, err = zklock.Multi(l.sem[0], l.fair[1], l.rw[0], l.fair[0], l.handed[0], l.kept[0])
	l.multiPlaces = []referee.Place{semPlaces[0], fairPlaces[1], rwPlaces[0], fairPlaces[0], handedPlaces[0], keptPlaces[0]}
	l.multiWeights = []int{1, 1, all, 1, 1, 1}
	return l, err
}

// whole is a lock and as many leases as it has.
type whole struct {
	path    string
	leases  int
	acquire func(context.Context) (*queue.Lease, error)
}

// everything returns, for each place of a cycle, how to take all of it. A place of everything's own that is kept
// after that goes when its time is over.
func (l *locks) everything(cycle int) []whole {
	var every []whole
	for _, mx := range slices.Concat(l.fair, l.electoral, l.handed, l.kept) {
		every = append(every, whole{mx.Path(), 1, mx.Acquire})
	}
	for i := range allKeys {
		k := key(cycle, i)
		every = append(every,
			whole{l.keyed.Path(k), 1, func(ctx context.Context) (*queue.Lease, error) { return l.keyed.Acquire(ctx, k) }},
			whole{l.rwKeyed.Path(k), 1, func(ctx context.Context) (*queue.Lease, error) { return l.rwKeyed.Acquire(ctx, k) }})
	}
	for _, rw := range slices.Concat(l.rw, l.keptRW) {
		every = append(every, whole{rw.Path(), 1, rw.Acquire})
	}
	for i, s := range l.sem {
		every = append(every, whole{s.Path(), semPlaces[i].Capacity, s.Acquire})
	}
	for i, s := range l.curator {
		every = append(every, whole{s.Path(), curatorPlaces[i].Capacity, s.Acquire})
	}
	return every
}
