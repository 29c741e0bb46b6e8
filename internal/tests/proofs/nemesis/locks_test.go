//go:build linux

package nemesis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/elected"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	jobs "github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// subject is a lock that is attacked: how many use it in each worker, and by what rule they hold it.
type subject struct {
	name  string // the last element of its path
	hands int    // contenders in each worker
	rule
	acl  []zk.ACL // of its directory; nil: it is open to all, and the workers make it
	open func(o *ours, path string) (draws, error)
}

// draws returns one of the ways to take a lock, at random.
type draws func(*rand.Rand) acquires

// The locks of this module that are attacked, by the last elements of their paths, if they are named elsewhere.
const (
	mutexName     = "mutex"
	localName     = "local-mutex"
	rwName        = "rwlock"
	semaphoreName = "counting-semaphore"
	keptName      = "kept-mutex"
	keptRWName    = "kept-rwlock"
	multiName     = "multi"
	jobName       = "job"
)

const (
	handOvers   = 3 // of a mutex with local hand-over, in a row
	leases      = 3 // of a semaphore
	contestedOf = 3 // of the keys are always in use
)

// subjects are the locks of this module. The multi-lock is last, as it takes some of the others.
var subjects []subject

func init() { // their functions refer to the list
	subjects = []subject{
		{name: mutexName, hands: 1, open: openMutex},
		{name: localName, hands: 3, rule: rule{shared: true}, acl: closedTo(), open: openMutex},
		{name: keptName, hands: 1, rule: rule{shared: true}, open: openMutex},
		{name: "keys", hands: 4, rule: rule{shared: true}, open: openKeys},
		{name: rwName, hands: 3, rule: rule{limit: unlimited}, open: openRW},
		{name: keptRWName, hands: 2, rule: rule{limit: unlimited, shared: true}, open: openRW},
		{name: "rw-keys", hands: 2, rule: rule{limit: unlimited, shared: true}, open: openRWKeys},
		{name: semaphoreName, hands: 2, rule: rule{limit: leases}, open: openSemaphore},
		{name: "semaphore-curator", hands: 2, rule: rule{limit: leases}, open: openCurators},
		{name: "election", hands: 2, open: openElection},
		{name: jobName, hands: 1, open: openJob},
		{name: multiName, hands: 1, open: openMulti},
	}
}

// chosen returns the locks with some names, and those that the multi-lock takes if it is among them.
func chosen(names []string) (some []subject, err error) {
	if slices.Contains(names, multiName) {
		names = append(names, slices.Concat(multiParts...)...)
	}
	var known []string
	for _, s := range subjects {
		known = append(known, s.name)
		if slices.Contains(names, s.name) {
			some = append(some, s)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no lock %q: want some of %q", name, known)
		}
	}
	return some, nil
}

// ours is this module, with one manager for all locks.
type ours struct {
	m       *session.Manager
	timeout time.Duration // of its sessions
	lazy    time.Duration // for how long the kept locks keep their places; 0: not at all
	seed    uint64
	made    map[string]zklock.ContextLocker // by name
}

func newOurs(w *worker) (client, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	o := &ours{
		timeout: w.Timeout, seed: w.Seed<<16 | uint64(w.Worker)<<8 | uint64(w.Life), made: make(map[string]zklock.ContextLocker),
		// The shortest is over now and then before another contender comes.
		lazy: [workers]time.Duration{w.Timeout / 200, 0, w.Timeout / 20, w.Timeout, 0}[w.Worker],
	}
	servers, opts := w.variation()
	log.Info("variation", "resolver", servers == "")
	m, err := session.Connect(context.Background(), servers, append(opts, session.WithTimeout(w.Timeout), session.WithLogger(log))...)
	if err != nil {
		return nil, err
	}
	m.Subscribe(func(c session.Change) {
		if c.To == session.Lost && c.From != session.Lost {
			say(event{Worker: w.Worker, Life: w.Life, What: eventLost, From: now(), To: now(), Error: text(c.Err)})
		}
	})
	o.m = m
	return o, nil
}

func (o *ours) close() error {
	_ = o.m.Close()
	return nil
}

// contenders returns several contenders for one lock object. The first mutex and the multi-lock have
// only one each, and wait for other processes.
func (o *ours) contenders(at string) (all []acquires, err error) {
	s := subjects[slices.IndexFunc(subjects, func(s subject) bool { return s.name == path.Base(at) })]
	draw, err := s.open(o, at)
	if err != nil {
		return nil, err
	}
	for range s.hands {
		o.seed++
		r := rand.New(rand.NewPCG(o.seed, uint64(s.hands)))
		all = append(all, func(ctx context.Context) (*hold, error) { return draw(r)(ctx) })
	}
	return all, nil
}

// lock is what the locks have in common.
type lock interface {
	Acquire(context.Context) (*queue.Lease, error)
	TryAcquire(context.Context) (*queue.Lease, error)
	Lock(context.Context) error
	TryLock(context.Context) (bool, error)
	Unlock() error
	Do(context.Context, func(context.Context) error) error
	TryDo(context.Context, func(context.Context) error) (bool, error)
	Held() bool
}

// anyWay draws one of the calls that take a lock. sole returns the same lock as an object of its own, if others hold
// the object beside this contender: then its Held is about this hold only.
func anyWay(l lock, c claim, sole func() (lock, error)) draws {
	slot := func(try bool) acquires {
		return func(ctx context.Context) (*hold, error) {
			one, err := sole()
			if err != nil {
				return nil, err
			}
			got := true
			if try {
				got, err = one.TryLock(ctx)
			} else {
				err = one.Lock(ctx)
			}
			if !got && err == nil {
				err = queue.ErrBusy
			}
			return slotHold(one.Held, one.Unlock, c), err
		}
	}
	return func(r *rand.Rand) acquires {
		switch n := r.IntN(16); {
		case n == 0:
			return byLease(l.TryAcquire, c)
		case n == 1:
			return slot(true)
		case n == 2:
			return byDo(l.TryDo, c)
		case n < 5:
			return slot(false)
		case n < 7:
			return byDo(blocking(l.Do), c)
		default:
			return byLease(l.Acquire, c)
		}
	}
}

func byLease(get func(context.Context) (*queue.Lease, error), c claim) acquires {
	return func(ctx context.Context) (*hold, error) {
		lease, err := get(ctx)
		if err != nil {
			return nil, err
		}
		return &hold{claim: c, held: func() bool { return lease.Err() == nil }, token: lease.Token, release: lease.Release}, nil
	}
}

// slotHold is a hold of a Lock. Its token is unknown, because no lease is shown.
func slotHold(held func() bool, unlock func() error, c claim) *hold {
	return &hold{claim: c, held: held, release: func(context.Context) error { return unlock() }}
}

type does func(context.Context, func(context.Context) error) (bool, error)

func blocking(do func(context.Context, func(context.Context) error) error) does {
	return func(ctx context.Context, f func(context.Context) error) (bool, error) { return true, do(ctx, f) }
}

// byDo holds for the time in which the function of a Do runs, as long as its context is alive.
func byDo(do does, c claim) acquires {
	return func(ctx context.Context) (*hold, error) {
		leave, result := make(chan struct{}), make(chan error, 1)
		inside := make(chan context.Context, 1)
		go func() {
			ran, err := do(ctx, func(ctx context.Context) error {
				inside <- ctx
				<-leave
				return nil
			})
			if !ran && err == nil {
				err = queue.ErrBusy
			}
			result <- err
		}()
		select {
		case work := <-inside:
			h := &hold{claim: c, held: func() bool { return work.Err() == nil }, release: func(context.Context) error {
				close(leave)
				return <-result
			}}
			if lease, ok := queue.LeaseFrom(work); ok {
				h.token = lease.Token
			}
			return h, nil
		case err := <-result:
			return nil, err
		}
	}
}

func openMutex(o *ours, at string) (draws, error) {
	var opts []zklock.Option
	switch name := path.Base(at); {
	case name == localName:
		opts = []zklock.Option{zklock.WithLocalHandover(handOvers), zklock.WithAsyncRelease()}
	case name == keptName && o.lazy > 0:
		opts = []zklock.Option{zklock.WithLazyRelease(o.lazy)}
	}
	m, err := zklock.New(o.m, at, opts...)
	o.made[path.Base(at)] = m
	way := anyWay(m, claim{}, func() (lock, error) { return m, nil })
	return func(r *rand.Rand) acquires {
		switch n := r.IntN(64); {
		case n == 0:
			return func(context.Context) (*hold, error) {
				l := m.Locker(nil)
				l.Lock()
				return slotHold(m.Held, func() error { l.Unlock(); return nil }, claim{}), nil
			}
		case n == 1: // asks one of the contenders to give the lock up: that ends the context of a Do
			return func(ctx context.Context) (*hold, error) {
				all, err := m.Contenders(ctx)
				if err == nil && len(all) > 0 {
					err = zklock.Revoke(ctx, o.m, all[r.IntN(len(all))].Path)
				}
				return nil, errors.Join(errRevoked, err)
			}
		}
		return way(r)
	}, err
}

var errRevoked = errors.New("a contender was asked to leave")

// openKeys has keys that are always in use, and others that are used once. Of these nothing may stay.
func openKeys(o *ours, at string) (draws, error) {
	k, err := zklock.NewKeyed(o.m, at, zklock.WithLocalHandover(handOvers), zklock.WithLazyRelease(o.timeout/10))
	return func(r *rand.Rand) acquires {
		key, c := anyKey(r)
		one := keyed{k, key}
		return anyWay(one, c, func() (lock, error) { return one, nil })(r)
	}, err
}

func anyKey(r *rand.Rand) (string, claim) {
	n := r.IntN(contestedOf)
	if r.IntN(4) == 0 {
		n = contestedOf + r.IntN(1<<40)
	}
	return fmt.Sprint("key ", n), claim{Of: n + 1}
}

// keyed is the lock of one key.
type keyed struct {
	k   *zklock.Keyed
	key string
}

func (l keyed) Acquire(ctx context.Context) (*queue.Lease, error) { return l.k.Acquire(ctx, l.key) }
func (l keyed) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return l.k.TryAcquire(ctx, l.key)
}
func (l keyed) Lock(ctx context.Context) error            { return l.k.Lock(ctx, l.key) }
func (l keyed) TryLock(ctx context.Context) (bool, error) { return l.k.TryLock(ctx, l.key) }
func (l keyed) Unlock() error                             { return l.k.Unlock(l.key) }
func (l keyed) Held() bool                                { return l.k.Held(l.key) }
func (l keyed) Do(ctx context.Context, f func(context.Context) error) error {
	return l.k.Do(ctx, l.key, f)
}
func (l keyed) TryDo(ctx context.Context, f func(context.Context) error) (bool, error) {
	return l.k.TryDo(ctx, l.key, f)
}

func openRWKeys(o *ours, at string) (draws, error) {
	k, err := rwlock.NewKeyed(o.m, at, rwlock.WithLazyRelease(o.timeout/10))
	return func(r *rand.Rand) acquires {
		key, c := anyKey(r)
		do, tryDo, get, tryGet := k.Do, k.TryDo, k.Acquire, k.TryAcquire
		if r.IntN(3) > 0 {
			c.Weight, do, tryDo, get, tryGet = 1, k.RDo, k.TryRDo, k.RAcquire, k.TryRAcquire
		}
		switch r.IntN(8) {
		case 0:
			return byDo(func(ctx context.Context, f func(context.Context) error) (bool, error) { return tryDo(ctx, key, f) }, c)
		case 1, 2:
			return byDo(blocking(func(ctx context.Context, f func(context.Context) error) error { return do(ctx, key, f) }), c)
		case 3:
			get = tryGet
		}
		return byLease(func(ctx context.Context) (*queue.Lease, error) { return get(ctx, key) }, c)
	}, err
}

func openRW(o *ours, at string) (draws, error) {
	var opts []rwlock.Option
	kept := path.Base(at) == keptRWName
	if kept && o.lazy > 0 {
		opts = append(opts, rwlock.WithLazyRelease(o.lazy))
	}
	rw, err := rwlock.New(o.m, at, opts...)
	if err != nil {
		return nil, err
	}
	o.made[path.Base(at)] = rw
	writer := anyWay(rw, claim{}, func() (lock, error) { return rwlock.New(o.m, at, opts...) })
	reader := anyWay(rw.Reader(), claim{Weight: 1}, func() (lock, error) {
		own, err := rwlock.New(o.m, at, opts...)
		return own.Reader(), err
	})
	var last atomic.Int64
	return func(r *rand.Rand) acquires {
		n := r.IntN(16)
		if kept { // it does the same several times in a row, so that the place is used again
			if r.IntN(8) == 0 {
				last.Store(int64(n))
			}
			n = int(last.Load())
		}
		switch {
		case n < 5:
			return writer(r)
		case n < 8:
			return func(ctx context.Context) (*hold, error) { return o.writeThenRead(ctx, at) }
		default:
			return reader(r)
		}
	}, nil
}

// writeThenRead takes the write lock, to go on as a reader later. It uses an owner, and a lock object of its
// own, which knows its holds. Its releases wait for no server.
func (o *ours) writeThenRead(ctx context.Context, at string) (*hold, error) {
	rw, err := rwlock.New(o.m, at, rwlock.WithAsyncRelease())
	if err != nil {
		return nil, err
	}
	owner := queue.WithOwner(context.Background())
	if err := rw.Lock(merged{ctx, owner}); err != nil {
		return nil, err
	}
	h := slotHold(rw.Held, rw.Unlock, claim{})
	h.downgrade = func() error {
		if err := rw.RLock(owner); err != nil {
			return err
		}
		reader := slotHold(rw.Reader().Held, rw.RUnlock, claim{Weight: 1})
		h.claim, h.held, h.release = reader.claim, reader.held, reader.release
		return rw.Unlock()
	}
	return h, nil
}

// merged ends with a context and has the values of another.
type merged struct {
	context.Context
	values context.Context
}

func (m merged) Value(key any) any { return m.values.Value(key) }

func openSemaphore(o *ours, at string) (draws, error) {
	s, err := semaphore.New(o.m, at, leases)
	o.made[path.Base(at)] = s
	return func(r *rand.Rand) acquires {
		n, get := 1+r.IntN(2)*r.IntN(3), s.AcquireN
		if r.IntN(8) == 0 {
			get = s.TryAcquireN
		}
		return byLease(func(ctx context.Context) (*queue.Lease, error) { return get(ctx, n) }, claim{Weight: n})
	}, err
}

func openCurators(o *ours, at string) (draws, error) {
	s, err := semaphore.New(o.m, at, leases, semaphore.WithCuratorLayout())
	return anyWay(s, claim{Weight: 1}, func() (lock, error) {
		return semaphore.New(o.m, at, leases, semaphore.WithCuratorLayout())
	}), err
}

// openElection has candidates that lead once for each acquisition, as long as the context of their Run's function is alive.
// Now and then one asks the leader to resign.
func openElection(o *ours, at string) (draws, error) {
	el, err := election.New(o.m, at)
	return func(r *rand.Rand) acquires {
		if r.IntN(16) == 0 {
			return func(ctx context.Context) (*hold, error) {
				leader, err := el.Leader(ctx)
				if err == nil {
					err = zklock.Revoke(ctx, o.m, leader.Path)
				}
				return nil, errors.Join(errRevoked, err)
			}
		}
		return func(ctx context.Context) (*hold, error) {
			t, err := elected.Acquire(ctx, o.m, at)
			if err != nil {
				return nil, err
			}
			leave := t.Release
			if r.IntN(2) == 0 {
				leave = t.Resign
			}
			return &hold{held: func() bool { return t.Err() == nil }, token: t.Lease.Token, release: func(ctx context.Context) error {
				if err := leave(ctx); !errors.Is(err, queue.ErrReleasePending) { // an election does not say whether it is confirmed
					return err
				}
				return nil
			}}, nil
		}
	}, err
}

// openJob runs a job at a tick of its own each time, which is the time when it asks. Its function is the hold. A tick that is
// overtaken by a later one is no hold.
func openJob(o *ours, at string) (draws, error) {
	job, err := jobs.New(o.m, at)
	run := byDo(func(ctx context.Context, f func(context.Context) error) (bool, error) {
		outcome, err := job.Run(ctx, time.Now().Truncate(time.Millisecond), f)
		return outcome == jobs.Ran, err
	}, claim{})
	return func(*rand.Rand) acquires { return run }, err
}

// multiParts are the locks that the multi-locks take, in the order of their paths.
var multiParts = [][]string{{semaphoreName, mutexName, rwName}, {semaphoreName, localName, rwName}}

// openMulti makes the multi-locks. The locks that they take exist by now, because subjects names multi last.
func openMulti(o *ours, _ string) (draws, error) {
	var multis []*zklock.MultiLock
	for _, parts := range multiParts {
		var all []zklock.ContextLocker
		for _, name := range parts {
			all = append(all, o.made[name])
		}
		lock, err := zklock.Multi(all...)
		if err != nil {
			return nil, err
		}
		multis = append(multis, lock)
	}
	return func(r *rand.Rand) acquires {
		n, way := r.IntN(len(multis)), r.IntN(8)
		return func(ctx context.Context) (*hold, error) { return takeMulti(ctx, multis[n], multiParts[n], way) }
	}, nil
}

func takeMulti(ctx context.Context, lock *zklock.MultiLock, names []string, way int) (h *hold, err error) {
	parts := make([]part, len(names))
	for i, name := range names {
		if parts[i].lock = name; name == semaphoreName {
			parts[i].claim = claim{Weight: 1}
		}
	}
	if way == 0 {
		err = lock.Lock(ctx)
		h = slotHold(lock.Held, lock.Unlock, claim{})
		h.parts = parts
		return h, err
	}
	get := lock.Acquire
	if way == 1 {
		get = lock.TryAcquire
	}
	lease, err := get(ctx)
	if err != nil {
		return nil, err
	}
	// Its token is that of the read-write lock, whose writers exclude each other and never share a token, as holders of the
	// local mutex can.
	token := func(ctx context.Context) (int64, error) {
		var errs []error
		for i, l := range lease.Leases() {
			token, err := l.Token(ctx)
			parts[i].token, errs = token, append(errs, err)
		}
		return parts[slices.Index(names, rwName)].token, errors.Join(errs...)
	}
	return &hold{held: func() bool { return lease.Err() == nil }, token: token, release: lease.Release, parts: parts}, nil
}
