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
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/listing"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// The locks of this module that are attacked, by the last elements of their paths.
const (
	mutexName     = "mutex"
	localName     = "local-mutex"
	rwName        = "rwlock"
	semaphoreName = "counting-semaphore"
	curatorName   = "semaphore-curator"
	batchedName   = "batched-mutexes"
	keptName      = "kept-mutex"
	keptRWName    = "kept-rwlock"
	electionName  = "election"
	multiName     = "multi"
)

const (
	handOvers    = 3 // of the local mutex, in a row
	firstLimit   = 3 // of the semaphore, which New is given
	curatorLimit = 2
)

// keepFor is for how long a worker keeps the places of the kept locks; 0: not at all. The shortest is
// over now and then before another contender comes.
func keepFor(worker int, timeout time.Duration) time.Duration {
	return [workers]time.Duration{timeout / 200, 0, timeout / 20, timeout, 0}[worker]
}

// limits are the arguments of Resize.
var limits = []int{1, 2, 3, 5}

// ours is this module, with one manager for all locks.
type ours struct {
	m       *session.Manager
	lazy    time.Duration // for how long the kept locks keep their places
	handsOn bool          // the tried mutex has local hand-over
	seed    uint64
	made    map[string]zklock.ContextLocker // by name
}

func newOurs(s *settings) (client, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	o := &ours{
		lazy: keepFor(s.worker, s.timeout),
		seed: s.seed<<16 | uint64(s.worker)<<8 | uint64(s.life), made: make(map[string]zklock.ContextLocker),
	}
	o.handsOn = rand.New(rand.NewPCG(o.seed, uint64(s.worker))).IntN(2) == 0
	servers, opts := s.variation()
	log.Info("variation", "resolver", servers == "", "handsOn", o.handsOn)
	m, err := session.Connect(context.Background(), servers, append(opts, session.WithTimeout(s.timeout), session.WithLogger(log),
		session.WithTrace(listing.Hooks(now)))...)
	if err != nil {
		return nil, err
	}
	o.m = m
	return o, nil
}

func (o *ours) close() error {
	_ = o.m.Close()
	return nil
}

// contenders returns several contenders for one lock object. The first mutex and the multi-lock have
// only one each, and wait for other processes.
func (o *ours) contenders(p place) (all []contender, err error) {
	hands := subjectOf(p.name()).hands
	one, err := o.open(p)
	for range hands {
		o.seed++
		all = append(all, one(rand.New(rand.NewPCG(o.seed, uint64(hands)))))
	}
	return all, err
}

// open makes a lock, and returns how to make contenders for it.
func (o *ours) open(p place) (func(*rand.Rand) contender, error) {
	none := func(*rand.Rand) contender { return nil }
	var err error
	switch name := p.name(); name {
	case mutexName, localName, keptName:
		opts := map[string][]zklock.Option{
			localName: {zklock.WithLocalHandover(handOvers)},
		}
		if o.lazy > 0 {
			opts[keptName] = []zklock.Option{zklock.WithLazyRelease(o.lazy)}
		}
		var mutex *zklock.Mutex
		if mutex, err = zklock.New(o.m, p.path, opts[name]...); err != nil {
			return none, err
		}
		o.made[name] = mutex
		return func(r *rand.Rand) contender { return &ourMutex{mutex, r} }, nil
	case triedName, triedRWName, triedSemName:
		return o.openTried(p)
	case batchedName:
		several := make([]*zklock.Mutex, len(batchedDirs))
		for i, dir := range batchedDirs {
			if several[i], err = zklock.New(o.m, path.Join(p.path, dir)); err != nil {
				return none, err
			}
		}
		return func(r *rand.Rand) contender { return ourMutexes{several, r} }, nil
	case rwName, keptRWName:
		var opts []rwlock.Option
		if name == keptRWName && o.lazy > 0 {
			opts = append(opts, rwlock.WithLazyRelease(o.lazy))
		}
		rw, err := rwlock.New(o.m, p.path, opts...)
		if err != nil {
			return none, err
		}
		o.made[name] = rw
		return func(r *rand.Rand) contender {
			return &ourRW{m: o.m, rw: rw, random: r, often: name == keptRWName}
		}, nil
	case semaphoreName:
		s, err := semaphore.New(o.m, p.path, firstLimit)
		if err != nil {
			return none, err
		}
		o.made[name] = s
		return func(r *rand.Rand) contender { return ourSemaphore{s, r} }, nil
	case curatorName:
		s, err := semaphore.New(o.m, p.path, curatorLimit, semaphore.WithCuratorLayout())
		if err != nil {
			return none, err
		}
		return func(r *rand.Rand) contender { return ourCurators{s, r} }, nil
	case electionName:
		return func(r *rand.Rand) contender { return ourElection{o.m, p.path, r} }, nil
	case multiName:
		all, err := o.multis()
		if err != nil {
			return none, err
		}
		return func(r *rand.Rand) contender { return ourMultis{all, r} }, nil
	default:
		return none, fmt.Errorf("no lock %q", name)
	}
}

// multis take several of the other locks. They exist by now, because subjects names multi last.
func (o *ours) multis() (multis []ourMulti, err error) {
	for _, parts := range multiParts {
		var all []zklock.ContextLocker
		for _, name := range parts {
			all = append(all, o.made[name])
		}
		lock, e := zklock.Multi(all...)
		multis, err = append(multis, ourMulti{lock, parts}), errors.Join(err, e)
	}
	return multis, err
}

// multiParts are the locks that the multi-locks take, in the order of their paths. The first one is the
// lock with the longest wait, which others can hold at the same time. A local mutex that is in use is not
// taken in one transaction with the others. A plain one always is.
var multiParts = [][]string{{semaphoreName, mutexName, rwName}, {semaphoreName, localName, rwName}}

// batchedDirs are the mutexes at the path of one kind. A transaction has at most one create in a
// directory.
var batchedDirs = []string{"a", "b", "c", "d"}

// tries draws whether an acquisition does not wait.
func tries(r *rand.Rand) bool { return r.IntN(8) == 0 }

// acquires is the method of a lock that acquires it.
type acquires func(context.Context) (*queue.Lease, error)

func take(ctx context.Context, acquire acquires, c claim) (hold, error) {
	lease, err := acquire(ctx)
	if err != nil {
		return nil, err
	}
	return ourHold{lease, c}, nil
}

type ourMutex struct {
	mutex  *zklock.Mutex
	random *rand.Rand
}

func (m *ourMutex) acquire(ctx context.Context) (hold, error) {
	if tries(m.random) {
		return take(ctx, m.mutex.TryAcquire, claim{})
	}
	return take(ctx, m.mutex.Acquire, claim{})
}

// ourMutexes takes one of several mutexes.
type ourMutexes struct {
	several []*zklock.Mutex
	random  *rand.Rand
}

func (m ourMutexes) acquire(ctx context.Context) (hold, error) {
	i := m.random.IntN(len(m.several))
	if tries(m.random) {
		return take(ctx, m.several[i].TryAcquire, claim{Of: i + 1})
	}
	return take(ctx, m.several[i].Acquire, claim{Of: i + 1})
}

type ourRW struct {
	m      *session.Manager
	rw     *rwlock.RWMutex
	random *rand.Rand
	often  bool // does the same several times in a row, so that the place is used again
	last   int  // what it did
}

func (l *ourRW) acquire(ctx context.Context) (hold, error) {
	if !l.often || l.random.IntN(8) == 0 {
		l.last = l.random.IntN(16)
	}
	switch n := l.last; {
	case n == 0:
		return take(ctx, l.rw.TryAcquire, claim{})
	case n == 1:
		return take(ctx, l.rw.Reader().TryAcquire, claim{Reads: true})
	case n < 6:
		return take(ctx, l.rw.Acquire, claim{})
	case n < 9:
		return l.writer(ctx)
	default:
		return take(ctx, l.rw.Reader().Acquire, claim{Reads: true})
	}
}

// writer takes the write lock, to go on as a reader later. It uses an owner, and a lock object of its
// own, which knows its holds. Its releases wait for no server.
func (l *ourRW) writer(ctx context.Context) (hold, error) {
	rw, err := rwlock.New(l.m, l.rw.Path(), rwlock.WithAsyncRelease())
	if err != nil {
		return nil, err
	}
	owner := queue.WithOwner(context.Background())
	if err := rw.Lock(withOwnerOf(ctx, owner)); err != nil {
		return nil, err
	}
	return &downgraded{rw: rw, owner: owner}, nil
}

// withOwnerOf returns a context that ends with ctx and has the values of another.
func withOwnerOf(ctx, values context.Context) context.Context { return merged{ctx, values} }

type merged struct {
	context.Context
	values context.Context
}

func (m merged) Value(key any) any { return m.values.Value(key) }

// downgraded is a write lock, then a read lock in its place.
type downgraded struct {
	rw    *rwlock.RWMutex
	owner context.Context
	reads bool
}

func (d *downgraded) claim() claim { return claim{Reads: d.reads} }

func (d *downgraded) held() bool {
	if d.reads {
		return d.rw.Reader().Held()
	}
	return d.rw.Held()
}

// token is unknown, because no lease is shown.
func (d *downgraded) token(context.Context) (int64, error) { return 0, errNoToken }

func (d *downgraded) downgrade() error {
	if err := d.rw.RLock(d.owner); err != nil {
		return err
	}
	d.reads = true
	return d.rw.Unlock()
}

func (d *downgraded) release(context.Context) error {
	if d.reads {
		return d.rw.RUnlock()
	}
	return d.rw.Unlock()
}

type ourSemaphore struct {
	s      *semaphore.Semaphore
	random *rand.Rand
}

func (s ourSemaphore) limit() int { return limits[s.random.IntN(len(limits))] }

func (s ourSemaphore) resize(ctx context.Context, limit int) error { return s.s.Resize(ctx, limit) }

func (s ourSemaphore) acquire(ctx context.Context) (hold, error) {
	n := 1 + s.random.IntN(2)*s.random.IntN(3)
	get := s.s.AcquireN
	if tries(s.random) {
		get = s.s.TryAcquireN
	}
	ctx, seen := listing.Watch(ctx, s.s.Path())
	lease, err := get(ctx, n)
	if err != nil {
		return nil, err
	}
	return ourHold{lease, claim{Weight: n, View: seen()}}, nil
}

type ourCurators struct {
	s      *semaphore.Semaphore
	random *rand.Rand
}

func (s ourCurators) acquire(ctx context.Context) (hold, error) {
	if tries(s.random) {
		return take(ctx, s.s.TryAcquire, claim{Weight: 1})
	}
	return take(ctx, s.s.Acquire, claim{Weight: 1})
}

type ourHold struct {
	lease *queue.Lease
	has   claim
}

func (h ourHold) claim() claim                             { return h.has }
func (h ourHold) held() bool                               { return h.lease.Err() == nil }
func (h ourHold) token(ctx context.Context) (int64, error) { return h.lease.Token(ctx) }
func (h ourHold) release(ctx context.Context) error        { return h.lease.Release(ctx) }

type ourMulti struct {
	lock  *zklock.MultiLock
	parts []string
}

// ourMultis takes one of several multi-locks.
type ourMultis struct {
	all    []ourMulti
	random *rand.Rand
}

func (m ourMultis) acquire(ctx context.Context) (hold, error) {
	one := m.all[m.random.IntN(len(m.all))]
	ctx, seen := listing.Watch(ctx, path.Join(lockDir, semaphoreName))
	lease, err := one.lock.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return multiHold{lease, one.parts, seen(), make([]int64, len(one.parts))}, nil
}

type multiHold struct {
	lease  *zklock.MultiLease
	names  []string
	view   int64   // of the semaphore among the locks
	tokens []int64 // of the locks
}

func (h multiHold) claim() claim { return claim{} }

// held is true only if all of the locks are held.
func (h multiHold) held() bool { return h.lease.Err() == nil }

func (h multiHold) release(ctx context.Context) error { return h.lease.Release(ctx) }

// token is the token of the read-write lock. Its writers exclude each other and never share a token,
// as holders of the local mutex can.
func (h multiHold) token(ctx context.Context) (int64, error) {
	var errs []error
	for i, l := range h.lease.Leases() {
		token, err := l.Token(ctx)
		h.tokens[i], errs = token, append(errs, err)
	}
	return h.tokens[slices.Index(h.names, rwName)], errors.Join(errs...)
}

func (h multiHold) parts() []part {
	all := make([]part, len(h.names))
	for i, name := range h.names {
		all[i] = part{lock: name, token: &h.tokens[i]}
		if name == semaphoreName {
			all[i].claim = claim{Weight: 1, View: h.view}
		}
	}
	return all
}
