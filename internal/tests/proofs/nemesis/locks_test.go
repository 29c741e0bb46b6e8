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
	open func(o *ours, path string) (func(*rand.Rand) contender, error)
}

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
		{name: mutexName, hands: 1, open: openMutex(func(*ours) []zklock.Option { return nil })},
		{name: localName, hands: 3, rule: rule{shared: true}, acl: closedTo(), open: openMutex(func(*ours) []zklock.Option {
			return []zklock.Option{zklock.WithLocalHandover(handOvers), zklock.WithAsyncRelease()}
		})},
		{name: keptName, hands: 1, rule: rule{shared: true}, open: openMutex(func(o *ours) []zklock.Option {
			if o.lazy == 0 {
				return nil
			}
			return []zklock.Option{zklock.WithLazyRelease(o.lazy)}
		})},
		{name: "keys", hands: 4, rule: rule{shared: true}, open: openKeys},
		{name: rwName, hands: 3, rule: rule{limit: unlimited}, open: openRW},
		{name: keptRWName, hands: 2, rule: rule{limit: unlimited, shared: true}, open: openRW},
		{name: "rw-keys", hands: 2, rule: rule{limit: unlimited, shared: true}, open: openRWKeys},
		{name: semaphoreName, hands: 2, rule: rule{limit: leases}, open: openSemaphore},
		{name: "semaphore-curator", hands: 2, rule: rule{limit: leases}, open: openCurators},
		{name: "election", hands: 2, open: func(o *ours, path string) (func(*rand.Rand) contender, error) {
			return func(r *rand.Rand) contender { return ourElection{o.m, path, r} }, nil
		}},
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
		timeout: w.timeout, seed: w.seed<<16 | uint64(w.settings.worker)<<8 | uint64(w.life), made: make(map[string]zklock.ContextLocker),
		// The shortest is over now and then before another contender comes.
		lazy: [workers]time.Duration{w.timeout / 200, 0, w.timeout / 20, w.timeout, 0}[w.settings.worker],
	}
	servers, opts := w.variation()
	log.Info("variation", "resolver", servers == "")
	m, err := session.Connect(context.Background(), servers, append(opts, session.WithTimeout(w.timeout), session.WithLogger(log))...)
	if err != nil {
		return nil, err
	}
	m.Subscribe(func(c session.Change) {
		if c.To == session.Lost && c.From != session.Lost {
			say(event{Worker: w.settings.worker, Life: w.life, What: eventLost, From: now(), To: now(), Error: text(c.Err)})
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
func (o *ours) contenders(at string) (all []contender, err error) {
	s := subjects[slices.IndexFunc(subjects, func(s subject) bool { return s.name == path.Base(at) })]
	one, err := s.open(o, at)
	if err != nil {
		return nil, err
	}
	for range s.hands {
		o.seed++
		all = append(all, one(rand.New(rand.NewPCG(o.seed, uint64(s.hands)))))
	}
	return all, nil
}

// drawn is a contender that draws what it does.
type drawn struct {
	random *rand.Rand
	draw   func(*rand.Rand) acquires
}

func (d drawn) acquire(ctx context.Context) (hold, error) { return d.draw(d.random)(ctx) }

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
func anyWay(l lock, c claim, sole func() (lock, error)) func(*rand.Rand) acquires {
	slot := func(ctx context.Context, try bool) (hold, error) {
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
		return slotHold{one.Held, one.Unlock, c}, err
	}
	return func(r *rand.Rand) acquires {
		switch n := r.IntN(16); {
		case n == 0:
			return byLease(l.TryAcquire, c)
		case n == 1:
			return func(ctx context.Context) (hold, error) { return slot(ctx, true) }
		case n == 2:
			return byDo(l.TryDo, c)
		case n < 5:
			return func(ctx context.Context) (hold, error) { return slot(ctx, false) }
		case n < 7:
			return byDo(blocking(l.Do), c)
		default:
			return byLease(l.Acquire, c)
		}
	}
}

func byLease(get func(context.Context) (*queue.Lease, error), c claim) acquires {
	return func(ctx context.Context) (hold, error) {
		lease, err := get(ctx)
		if err != nil {
			return nil, err
		}
		return ourHold{lease, c}, nil
	}
}

type ourHold struct {
	lease *queue.Lease
	has   claim
}

func (h ourHold) claim() claim                             { return h.has }
func (h ourHold) held() bool                               { return h.lease.Err() == nil }
func (h ourHold) token(ctx context.Context) (int64, error) { return h.lease.Token(ctx) }
func (h ourHold) release(ctx context.Context) error        { return h.lease.Release(ctx) }

// slotHold is a hold of a Lock. Its token is unknown, because no lease is shown.
type slotHold struct {
	holds  func() bool
	unlock func() error
	has    claim
}

func (h slotHold) claim() claim                         { return h.has }
func (h slotHold) held() bool                           { return h.holds() }
func (h slotHold) token(context.Context) (int64, error) { return 0, errNoToken }
func (h slotHold) release(context.Context) error        { return h.unlock() }

// doHold is the time in which the function of a Do runs, as long as its context is alive.
type doHold struct {
	ctx    context.Context
	leave  chan struct{}
	result chan error
	has    claim
}

type does func(context.Context, func(context.Context) error) (bool, error)

func blocking(do func(context.Context, func(context.Context) error) error) does {
	return func(ctx context.Context, f func(context.Context) error) (bool, error) { return true, do(ctx, f) }
}

func byDo(do does, c claim) acquires {
	return func(ctx context.Context) (hold, error) {
		h := doHold{leave: make(chan struct{}), result: make(chan error, 1), has: c}
		inside := make(chan context.Context, 1)
		go func() {
			ran, err := do(ctx, func(ctx context.Context) error {
				inside <- ctx
				<-h.leave
				return nil
			})
			if !ran && err == nil {
				err = queue.ErrBusy
			}
			h.result <- err
		}()
		select {
		case h.ctx = <-inside:
			return h, nil
		case err := <-h.result:
			return nil, err
		}
	}
}

func (h doHold) claim() claim { return h.has }
func (h doHold) held() bool   { return h.ctx.Err() == nil }

func (h doHold) token(ctx context.Context) (int64, error) {
	lease, ok := queue.LeaseFrom(h.ctx)
	if !ok {
		return 0, errNoToken
	}
	return lease.Token(ctx)
}

func (h doHold) release(context.Context) error {
	close(h.leave)
	return <-h.result
}

func openMutex(options func(*ours) []zklock.Option) func(*ours, string) (func(*rand.Rand) contender, error) {
	return func(o *ours, at string) (func(*rand.Rand) contender, error) {
		m, err := zklock.New(o.m, at, options(o)...)
		o.made[path.Base(at)] = m
		way := anyWay(m, claim{}, func() (lock, error) { return m, nil })
		return func(r *rand.Rand) contender {
			return drawn{r, func(r *rand.Rand) acquires {
				switch n := r.IntN(64); {
				case n == 0:
					return func(context.Context) (hold, error) {
						l := m.Locker(nil)
						l.Lock()
						return slotHold{m.Held, func() error { l.Unlock(); return nil }, claim{}}, nil
					}
				case n == 1:
					return func(ctx context.Context) (hold, error) { return nil, o.revoke(ctx, m.Contenders, r) }
				default:
					return way(r)
				}
			}}
		}, err
	}
}

var errRevoked = errors.New("a contender was asked to leave")

// revoke asks one of the contenders to give the lock up: that ends the context of a Do. It returns an error.
func (o *ours) revoke(ctx context.Context, contenders func(context.Context) ([]queue.Contender, error), r *rand.Rand) error {
	all, err := contenders(ctx)
	if err == nil && len(all) > 0 {
		err = zklock.Revoke(ctx, o.m, all[r.IntN(len(all))].Path)
	}
	return errors.Join(errRevoked, err)
}

// openKeys has keys that are always in use, and others that are used once. Of these nothing may stay.
func openKeys(o *ours, at string) (func(*rand.Rand) contender, error) {
	k, err := zklock.NewKeyed(o.m, at, zklock.WithLocalHandover(handOvers), zklock.WithLazyRelease(o.timeout/10))
	return func(r *rand.Rand) contender {
		return drawn{r, func(r *rand.Rand) acquires {
			key, c := anyKey(r)
			one := keyed{k, key}
			return anyWay(one, c, func() (lock, error) { return one, nil })(r)
		}}
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

func openRWKeys(o *ours, at string) (func(*rand.Rand) contender, error) {
	k, err := rwlock.NewKeyed(o.m, at, rwlock.WithLazyRelease(o.timeout/10))
	return func(r *rand.Rand) contender {
		return drawn{r, func(r *rand.Rand) acquires {
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
		}}
	}, err
}

func openRW(o *ours, at string) (func(*rand.Rand) contender, error) {
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
	return func(r *rand.Rand) contender {
		last := 0
		return drawn{r, func(r *rand.Rand) acquires {
			// Kept places: it does the same several times in a row, so that the place is used again.
			if !kept || r.IntN(8) == 0 {
				last = r.IntN(16)
			}
			switch {
			case last < 5:
				return writer(r)
			case last < 8:
				return func(ctx context.Context) (hold, error) { return o.writeThenRead(ctx, at) }
			default:
				return reader(r)
			}
		}}
	}, nil
}

// writeThenRead takes the write lock, to go on as a reader later. It uses an owner, and a lock object of its
// own, which knows its holds. Its releases wait for no server.
func (o *ours) writeThenRead(ctx context.Context, at string) (hold, error) {
	rw, err := rwlock.New(o.m, at, rwlock.WithAsyncRelease())
	if err != nil {
		return nil, err
	}
	owner := queue.WithOwner(context.Background())
	if err := rw.Lock(merged{ctx, owner}); err != nil {
		return nil, err
	}
	return &downgraded{rw: rw, owner: owner}, nil
}

// merged ends with a context and has the values of another.
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

func (d *downgraded) claim() claim {
	if d.reads {
		return claim{Weight: 1}
	}
	return claim{}
}

func (d *downgraded) held() bool {
	if d.reads {
		return d.rw.Reader().Held()
	}
	return d.rw.Held()
}

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

func openSemaphore(o *ours, at string) (func(*rand.Rand) contender, error) {
	s, err := semaphore.New(o.m, at, leases)
	o.made[path.Base(at)] = s
	return func(r *rand.Rand) contender {
		return drawn{r, func(r *rand.Rand) acquires {
			n, get := 1+r.IntN(2)*r.IntN(3), s.AcquireN
			if r.IntN(8) == 0 {
				get = s.TryAcquireN
			}
			return byLease(func(ctx context.Context) (*queue.Lease, error) { return get(ctx, n) }, claim{Weight: n})
		}}
	}, err
}

func openCurators(o *ours, at string) (func(*rand.Rand) contender, error) {
	s, err := semaphore.New(o.m, at, leases, semaphore.WithCuratorLayout())
	way := anyWay(s, claim{Weight: 1}, func() (lock, error) {
		return semaphore.New(o.m, at, leases, semaphore.WithCuratorLayout())
	})
	return func(r *rand.Rand) contender { return drawn{r, way} }, err
}

// ourElection is a candidate that leads once for each acquisition.
type ourElection struct {
	m      *session.Manager
	path   string
	random *rand.Rand
}

func (e ourElection) acquire(ctx context.Context) (hold, error) {
	if e.random.IntN(16) == 0 {
		return nil, e.depose(ctx)
	}
	t, err := elected.Acquire(ctx, e.m, e.path)
	if err != nil {
		return nil, err
	}
	return term{t, e.random.IntN(2) == 0}, nil
}

// openJob runs a job at a tick of its own each time, which is the time when it asks. Its function is the hold. A tick that is
// overtaken by a later one is no hold.
func openJob(o *ours, at string) (func(*rand.Rand) contender, error) {
	job, err := jobs.New(o.m, at)
	run := byDo(func(ctx context.Context, f func(context.Context) error) (bool, error) {
		outcome, err := job.Run(ctx, time.Now().Truncate(time.Millisecond), f)
		return outcome == jobs.Ran, err
	}, claim{})
	return func(r *rand.Rand) contender { return drawn{r, func(*rand.Rand) acquires { return run }} }, err
}

// depose asks the leader to resign. It returns an error.
func (e ourElection) depose(ctx context.Context) error {
	el, err := election.New(e.m, e.path)
	if err != nil {
		return err
	}
	leader, err := el.Leader(ctx)
	if err == nil {
		err = zklock.Revoke(ctx, e.m, leader.Path)
	}
	return errors.Join(errRevoked, err)
}

// term holds as long as the context of its Run's function is alive.
type term struct {
	of      *elected.Term
	resigns bool
}

func (t term) claim() claim                             { return claim{} }
func (t term) held() bool                               { return t.of.Err() == nil }
func (t term) token(ctx context.Context) (int64, error) { return t.of.Lease.Token(ctx) }

// release ends the term. An election does not say whether that is confirmed already.
func (t term) release(ctx context.Context) error {
	leave := t.of.Release
	if t.resigns {
		leave = t.of.Resign
	}
	if err := leave(ctx); !errors.Is(err, queue.ErrReleasePending) {
		return err
	}
	return nil
}

// multiParts are the locks that the multi-locks take, in the order of their paths.
var multiParts = [][]string{{semaphoreName, mutexName, rwName}, {semaphoreName, localName, rwName}}

// openMulti makes the multi-locks. The locks that they take exist by now, because subjects names multi last.
func openMulti(o *ours, _ string) (func(*rand.Rand) contender, error) {
	var multis []ourMulti
	for _, parts := range multiParts {
		var all []zklock.ContextLocker
		for _, name := range parts {
			all = append(all, o.made[name])
		}
		lock, err := zklock.Multi(all...)
		if err != nil {
			return nil, err
		}
		multis = append(multis, ourMulti{lock, parts})
	}
	return func(r *rand.Rand) contender {
		return drawn{r, func(r *rand.Rand) acquires { return multis[r.IntN(len(multis))].take(r.IntN(8)) }}
	}, nil
}

type ourMulti struct {
	lock  *zklock.MultiLock
	names []string
}

func (m ourMulti) take(way int) acquires {
	return func(ctx context.Context) (hold, error) {
		h := multiHold{names: m.names, tokens: make([]int64, len(m.names))}
		if way == 0 {
			err := m.lock.Lock(ctx)
			h.hold = slotHold{m.lock.Held, m.lock.Unlock, claim{}}
			return h, err
		}
		get := m.lock.Acquire
		if way == 1 {
			get = m.lock.TryAcquire
		}
		lease, err := get(ctx)
		if err != nil {
			return nil, err
		}
		h.hold = multiLease{lease, m.names, h.tokens}
		return h, nil
	}
}

type multiHold struct {
	hold
	names  []string
	tokens []int64 // of the locks
}

func (h multiHold) parts() []part {
	all := make([]part, len(h.names))
	for i, name := range h.names {
		all[i] = part{lock: name, token: &h.tokens[i]}
		if name == semaphoreName {
			all[i].claim = claim{Weight: 1}
		}
	}
	return all
}

// multiLease is held only if all of the locks are.
type multiLease struct {
	lease  *zklock.MultiLease
	names  []string
	tokens []int64
}

func (h multiLease) claim() claim                      { return claim{} }
func (h multiLease) held() bool                        { return h.lease.Err() == nil }
func (h multiLease) release(ctx context.Context) error { return h.lease.Release(ctx) }

// token is the token of the read-write lock. Its writers exclude each other and never share a token,
// as holders of the local mutex can.
func (h multiLease) token(ctx context.Context) (int64, error) {
	var errs []error
	for i, l := range h.lease.Leases() {
		token, err := l.Token(ctx)
		h.tokens[i], errs = token, append(errs, err)
	}
	return h.tokens[slices.Index(h.names, rwName)], errors.Join(errs...)
}
