//go:build linux

package nemesis

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// subject is a lock that is attacked: how many use it in each worker, and by what rule they hold it.
type subject struct {
	name  string // the last element of its path
	hands int    // contenders in each worker
	rule
	acl  []zk.ACL // of its directory; nil: it is open to all, and the workers make it
	open func(w *worker, path string) (draws, error)
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
	jobName       = "job"
	rivalName     = "zk.Lock"
)

const (
	handOvers   = 3 // of a mutex with local hand-over, in a row
	leases      = 3 // of a semaphore
	contestedOf = 3 // of the keys are always in use
)

// subjects are the locks of this module, and the rival.
var subjects = []subject{
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
	{name: "multi", hands: 1, open: openMulti},
	{name: rivalName, hands: 1, open: openRival},
}

// ours are all but the rival.
func ours() []subject { return subjects[:len(subjects)-1] }

// chosen returns the locks with some names.
func chosen(names ...string) (some []subject, err error) {
	for _, name := range names {
		i := slices.IndexFunc(subjects, func(s subject) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no lock %q", name)
		}
		some = append(some, subjects[i])
	}
	return some, nil
}

// connect opens the session of a worker.
func (w *worker) connect() (err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	servers, opts := w.variation()
	log.Info("variation", "resolver", servers == "")
	w.m, err = session.Connect(context.Background(), servers, append(opts, session.WithTimeout(w.Timeout), session.WithLogger(log))...)
	if err != nil {
		return err
	}
	w.m.Subscribe(func(c session.Change) {
		if c.To == session.Lost && c.From != session.Lost {
			w.say(event{What: eventLost, From: now(), To: now(), Error: text(c.Err)})
		}
	})
	return nil
}

// lazy is for how long the kept locks keep their places; 0: not at all. The shortest is over now and then before another
// contender comes.
func (w *worker) lazy() time.Duration {
	return [workers]time.Duration{w.Timeout / 200, 0, w.Timeout / 20, w.Timeout, 0}[w.Worker]
}

// lock is what the locks have in common.
type lock interface {
	Acquire(context.Context) (*queue.Lease, error)
	TryAcquire(context.Context) (*queue.Lease, error)
	Lock(context.Context) error
	Unlock() error
	Do(context.Context, func(context.Context) error) error
	TryDo(context.Context, func(context.Context) error) (bool, error)
	Held() bool
}

// anyWay draws one of the calls that take a lock. sole returns the same lock as an object of its own, if others hold
// the object beside this contender: then its Held is about this hold only.
func anyWay(l lock, c claim, sole func() (lock, error)) draws {
	slot := func(ctx context.Context) (*hold, error) {
		one, err := sole()
		if err != nil {
			return nil, err
		}
		return slotHold(one.Held, one.Unlock, c), one.Lock(ctx)
	}
	return func(r *rand.Rand) acquires {
		switch n := r.IntN(16); {
		case n == 0:
			return byLease(l.TryAcquire, c)
		case n == 1:
			return byDo(l.TryDo, c)
		case n < 5:
			return slot
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
