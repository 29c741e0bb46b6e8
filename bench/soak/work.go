package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/listing"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/referee"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

const (
	shortHold      = 15 * time.Millisecond
	longHold       = 2 * sessionTimeout // of one in longHoldOneIn: through a partition and its loss
	longHoldOneIn  = 60
	releaseTimeout = 5 * time.Second
)

// worker is a goroutine that uses a client's locks at random.
type worker struct {
	c       *client
	cycle   int
	rng     *rand.Rand
	referee *referee.Referee
	tally   *tally
}

// work goes on until ctx ends or the client's manager is closed. It returns an error
// that no fault explains.
func (w *worker) work(ctx context.Context) error {
	for ctx.Err() == nil {
		waiting, cancel := w.waiting(ctx)
		what, err := w.once(waiting)
		cancel()
		if errors.Is(err, session.ErrClosed) {
			return nil
		}
		if !w.tally.outcome(what, err) {
			return fmt.Errorf("%s of %s: %w", what, w.c.name, err)
		}
	}
	return nil
}

// waiting bounds one wait for a lock: some waiters give up at once, some soon, some late.
func (w *worker) waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	longest := []time.Duration{2 * time.Millisecond, 50 * time.Millisecond, time.Second, 4 * time.Second}[w.rng.IntN(4)]
	return context.WithTimeout(ctx, upTo(w.rng, longest))
}

// once does one of the things that can be done with a lock.
func (w *worker) once(ctx context.Context) (string, error) {
	l := w.c.locks
	switch n := w.rng.IntN(100); {
	case n < 6:
		return "election", w.elect(ctx, electionPlaces[w.rng.IntN(len(electionPlaces))])
	case n < 12:
		return "mutex of a key", w.again(func() error { return w.key(ctx, w.anyKey()) })
	case n < 18:
		return "rwlock of a key", w.again(func() error { return w.readWriteKey(ctx, w.anyKey()) })
	case n < 33:
		i := w.rng.IntN(len(l.fair))
		return "mutex", w.mutex(ctx, fairPlaces[i], l.fair[i])
	case n < 40:
		i := w.rng.IntN(len(l.handed))
		return "mutex, places handed on", w.again(func() error { return w.mutex(ctx, handedPlaces[i], l.handed[i]) })
	case n < 47:
		i := w.rng.IntN(len(l.kept))
		return "mutex, places kept", w.again(func() error { return w.mutex(ctx, keptPlaces[i], l.kept[i]) })
	case n < 54:
		return "multi", w.several(ctx)
	case n < 65:
		i := w.rng.IntN(len(l.rw))
		return "rwlock", w.readWrite(ctx, rwPlaces[i], l.rw[i])
	case n < 75:
		i := w.rng.IntN(len(l.keptRW))
		return "rwlock, places kept", w.again(func() error { return w.readWrite(ctx, keptRWPlaces[i], l.keptRW[i]) })
	case n < 84:
		i := w.rng.IntN(len(l.sem))
		return "semaphore", w.semaphore(ctx, semPlaces[i], l.sem[i], 1+w.rng.IntN(semPlaces[i].Capacity))
	case n < 86:
		i := w.rng.IntN(len(l.sem))
		return "resize", w.resize(ctx, semPlaces[i], l.sem[i])
	case n < 93:
		i := w.rng.IntN(len(l.curator))
		return "semaphore, Curator's layout", w.curators(ctx, curatorPlaces[i], l.curator[i])
	case n < 96 && w.c.user:
		return "read of a closed node", w.readClosed(ctx)
	default:
		i := w.rng.IntN(len(l.fair))
		return "look and revoke", w.look(ctx, l.fair[i])
	}
}

// again uses a lock up to six times in a row, so that a place that is kept is used again.
func (w *worker) again(use func() error) error {
	for range w.rng.IntN(6) {
		if err := use(); err != nil {
			return err
		}
	}
	return use()
}

func (w *worker) mutex(ctx context.Context, p referee.Place, mx *zklock.Mutex) error {
	switch w.rng.IntN(7) {
	case 0:
		return w.lease(ctx, p, 1, "lease", mx.Acquire)
	case 1:
		return w.lease(ctx, p, 1, "tried lease", mx.TryAcquire)
	case 2:
		got, err := mx.TryLock(ctx)
		if err != nil || !got {
			return err
		}
	case 3:
		return mx.Do(ctx, func(ctx context.Context) error {
			w.during(p, 1, "Do", mx.Held, ctx.Done())
			return nil
		})
	case 4:
		w.locker(p, mx)
		return nil
	default:
		if err := mx.Lock(ctx); err != nil {
			return err
		}
	}
	w.during(p, 1, "Lock", mx.Held, nil)
	return mx.Unlock()
}

// locker waits for a mutex for as long as it takes, as code does that knows only sync.Locker. It ends the
// worker if the manager is closed.
func (w *worker) locker(p referee.Place, mx *zklock.Mutex) {
	l := mx.Locker(nil)
	l.Lock()
	defer l.Unlock()
	w.during(p, 1, "Locker", mx.Held, nil)
}

func (w *worker) readWrite(ctx context.Context, p referee.Place, rw *rwlock.RWMutex) error {
	switch w.rng.IntN(8) {
	case 0, 1:
		return w.lease(ctx, p, 1, "reader", rw.Reader().Acquire)
	case 2:
		return w.lease(ctx, p, 1, "tried reader", rw.Reader().TryAcquire)
	case 3:
		return w.lease(ctx, p, all, "tried writer", rw.TryAcquire)
	case 4:
		return w.downgrade(ctx, p)
	case 5:
		return w.read(ctx, p)
	default:
		return w.lease(ctx, p, all, "writer", rw.Acquire)
	}
}

// read reads by RLock, through an object of its own, so that Held is about this reader only.
func (w *worker) read(ctx context.Context, p referee.Place) error {
	rw, err := rwlock.New(w.c.m, p.Path)
	if err != nil {
		return err
	}
	if err := rw.RLock(ctx); err != nil {
		return err
	}
	w.during(p, 1, "RLock", rw.Reader().Held, nil)
	return rw.RUnlock()
}

// downgrade takes a write lock and goes on as a reader, through an object of its own as well.
func (w *worker) downgrade(ctx context.Context, p referee.Place) error {
	rw, err := rwlock.New(w.c.m, p.Path)
	if err != nil {
		return err
	}
	ctx = queue.WithOwner(ctx)
	if err := rw.Lock(ctx); err != nil {
		return err
	}
	w.during(p, all, "writer", rw.Held, nil)
	if err := rw.RLock(ctx); err != nil {
		return errors.Join(err, rw.Unlock())
	}
	err = rw.Unlock()
	w.during(p, 1, "reader that was a writer", rw.Reader().Held, nil)
	return errors.Join(err, rw.RUnlock())
}

// semaphore takes leases of a semaphore whose limit may change.
func (w *worker) semaphore(ctx context.Context, p referee.Place, s *semaphore.Semaphore, n int) error {
	ctx, asked := listing.Watch(ctx, p.Path)
	get := s.AcquireN
	switch w.rng.IntN(4) {
	case 0:
		get = s.TryAcquireN
	case 1:
		return w.anyLease(ctx, s)
	}
	l, err := get(ctx, n)
	switch {
	case errors.Is(err, session.ErrInvalid):
		return errLimited
	case err != nil:
		return err
	}
	w.attend(&referee.Hold{
		Place: p, Who: w.c.name, What: fmt.Sprintf("%d leases", n), Weight: n, View: asked(),
		Held: func() bool { return l.Err() == nil },
	}, l.Done())
	return release(l.Release)
}

// errLimited says that a request asks for more leases than the present limit.
var errLimited = errors.New("more than there is")

// resize changes the limit of a semaphore, and tells the referee.
func (w *worker) resize(ctx context.Context, p referee.Place, s *semaphore.Semaphore) error {
	most := 1 + w.rng.IntN(p.Capacity+2)
	ended := w.referee.LimitsOf(p).Change(most)
	err := s.Resize(ctx, most)
	ended(err)
	return err
}

func (w *worker) curators(ctx context.Context, p referee.Place, s *semaphore.Semaphore) error {
	switch w.rng.IntN(4) {
	case 0:
		return w.lease(ctx, p, 1, "tried lease", s.TryAcquire)
	case 1:
		return w.anyLease(ctx, s)
	}
	return w.lease(ctx, p, 1, "lease", s.Acquire)
}

// anyLease takes a lease by Do, and does not tell the referee, because the lock object does not show
// whether that lease is held.
func (w *worker) anyLease(ctx context.Context, s *semaphore.Semaphore) error {
	return s.Do(ctx, func(ctx context.Context) error {
		w.pause(ctx.Done())
		return nil
	})
}

func (w *worker) several(ctx context.Context) error {
	l := w.c.locks
	ctx, asked := listing.Watch(ctx, l.sem[0].Path())
	get := l.multi.Acquire
	switch w.rng.IntN(4) {
	case 0:
		get = l.multi.TryAcquire
	case 1:
		if err := l.multi.Lock(ctx); err != nil {
			return err
		}
		w.duringAll(asked(), func(int) func() bool { return l.multi.Held }, nil)
		return l.multi.Unlock()
	}
	ml, err := get(ctx)
	if err != nil {
		return err
	}
	leases := ml.Leases()
	w.duringAll(asked(), func(i int) func() bool { return func() bool { return leases[i].Err() == nil } }, ml.Done())
	return release(ml.Release)
}

// duringAll is during for all the places of a multi-lock, by their index. The view is that of the
// semaphore among them.
func (w *worker) duringAll(view int64, held func(i int) func() bool, lost <-chan struct{}) {
	var holds []*referee.Hold
	for i, p := range w.c.locks.multiPlaces {
		h := &referee.Hold{Place: p, Who: w.c.name, What: "multi", Weight: w.c.locks.multiWeights[i], Held: held(i), View: view}
		w.referee.Enter(h)
		holds = append(holds, h)
	}
	w.pause(lost)
	for _, h := range holds {
		w.referee.Leave(h)
	}
}

// look lists the contenders, and now and then revokes one of them: that ends the context of a Do.
func (w *worker) look(ctx context.Context, mx *zklock.Mutex) error {
	contenders, err := mx.Contenders(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		return nil // nobody has been there for a while
	}
	if err != nil || len(contenders) == 0 {
		return err
	}
	err = zklock.Revoke(ctx, w.c.m, contenders[w.rng.IntN(len(contenders))].Path)
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zklock.ErrNotRevocable) || errors.Is(err, session.ErrUncertain) {
		return nil // it has gone meanwhile, or does not listen; or the reply was lost
	}
	return err
}

// lease gets a lease and gives it back.
func (w *worker) lease(ctx context.Context, p referee.Place, weight int, what string, get func(context.Context) (*queue.Lease, error)) error {
	l, err := get(ctx)
	if err != nil {
		return err
	}
	w.during(p, weight, what, func() bool { return l.Err() == nil }, l.Done())
	return release(l.Release)
}

// during tells the referee of a hold for a moment, or until it is lost.
func (w *worker) during(p referee.Place, weight int, what string, held func() bool, lost <-chan struct{}) {
	w.attend(&referee.Hold{Place: p, Who: w.c.name, What: what, Weight: weight, Held: held}, lost)
}

func (w *worker) attend(h *referee.Hold, lost <-chan struct{}) {
	w.referee.Enter(h)
	w.pause(lost)
	w.referee.Leave(h)
}

// pause is the work under a lock.
func (w *worker) pause(until <-chan struct{}) {
	longest := shortHold
	if w.rng.IntN(longHoldOneIn) == 0 {
		longest = longHold
	}
	timer := time.NewTimer(upTo(w.rng, longest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-until:
	}
}

func release(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	return f(ctx)
}
