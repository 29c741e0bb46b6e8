package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// worker takes locks in one way after another.
type worker struct {
	world *world
	m     *member
	id    int
	name  string
	rng   *rand.Rand

	life context.Context
	stop context.CancelFunc

	calls   int   // so far
	current *call // guarded by checks.mu

	mu   sync.Mutex
	what string // it does now; "" for nothing that others could keep it from
}

type workerKey struct{}

func newWorker(w *world, m *member, i int) *worker {
	k := &worker{
		world: w, m: m, id: i, name: "w" + strconv.Itoa(i),
		rng: rand.New(rand.NewPCG(w.seed, 200+uint64(i))),
	}
	k.life, k.stop = context.WithCancel(context.WithValue(context.Background(), workerKey{}, k))
	return k
}

func (k *worker) run() {
	defer byGoroutine.Delete(goroutine())
	defer k.stop()
	defer k.now("")
	for k.world.in() != ending && k.life.Err() == nil {
		k.sleep(k.upTo(k.world.plan.busy))
		k.now("wait for a manager")
		mgr, err := k.m.current(k.life)
		if err != nil {
			return
		}
		if k.apart() != nil {
			k.sleep(0) // all workers that have waited for a manager wake at once
		}
		k.turn(mgr)
		k.now("")
	}
}

// upTo draws a duration; short ones more often.
func (k *worker) upTo(d time.Duration) time.Duration {
	if k.rng.IntN(2) == 0 {
		d /= 20
	}
	return time.Duration(k.rng.Int64N(int64(d)))
}

func (k *worker) sleep(d time.Duration) { k.world.sleepAs(k.m.party, d, k.apart()...) }

// apart tells a worker from others of its manager, where they must not act at one instant. That is
// where the worker that releases a lock wakes the next one at that very instant, so that both go
// on from there, and are in one queue when they come back.
func (k *worker) apart() []any {
	if k.world.kind.handovers == 0 {
		return nil
	}
	return []any{k.id}
}

func (k *worker) now(what string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.what = what
}

func (k *worker) doing() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.what
}

func (k *worker) log(format string, args ...any) { k.world.trace.add(k.name, format, args...) }

// call is one acquisition of a worker.
type call struct {
	*worker
	lock any // a leaser, a locker or both
	path string
	mode string
	ctx  context.Context
	try  bool
	// until when the call may take, apart from the manager's Close; zero for no end
	deadline time.Time
	began    time.Time
	mgr      *session.Manager

	// The fields below are guarded by checks.mu.
	entry    *acquisition // the present attempt
	attempts int
	nodes    []place // granted to it
	ended    int     // of these, how many holds have ended
	present  bool    // contenders were there when a try began
	number   int     // of the worker's calls
	perCall  bool    // it has no node of its own
	dropped  bool    // a function has panicked in it
	finished bool    // it has returned
	grants   map[string]grantInfo
}

// several reports whether a call takes several locks, and may give some back and begin anew.
func (c *call) several() bool { return len(c.usage().parts) > 1 }

func (c *call) usage() usage { return c.world.kind.usages[c.mode] }

// turn takes a lock in some way and gives it back.
func (k *worker) turn(mgr *session.Manager) {
	w := k.world
	if w.kind.resized && k.rng.IntN(5) == 0 {
		k.resize(mgr)
		return
	}
	c := &call{worker: k, mgr: mgr}
	c.path, c.mode = w.kind.draw(w, k.m.party, k.rng)
	var err error
	if c.lock, err = k.m.lock(mgr, c.path, c.mode, c.usage().shared || w.kind.shared && k.rng.IntN(3) == 0); err != nil {
		w.checks.fail("open %s: %v", c.path, err)
		return
	}
	k.calls++
	ctx, cancel := context.WithCancel(seriesContext{k.life, &series{of: k, call: k.calls}})
	defer cancel()
	owned := w.kind.reentrant && k.rng.IntN(6) == 0 && !isCount(c.usage().parts[0].mode)
	if owned {
		ctx = queue.WithOwner(ctx)
	}
	how := k.rng.IntN(10)
	switch {
	case how < 3: // a timeout, or a cancel after as long
		d := k.upTo(4 * w.plan.busy)
		c.deadline = slot(time.Now().Add(d), k.m.party, mix(w.seed, append([]any{"cancel", time.Now()}, k.apart()...)...))
		stop := time.AfterFunc(time.Until(c.deadline), cancel)
		defer stop.Stop()
	case how < 5:
		c.try = true
	}
	c.ctx = ctx
	c.began = time.Now()
	switch l := c.lock.(type) {
	case doer:
		k.doTurn(c, l)
		return
	case candidate:
		k.candidateTurn(c, l)
		return
	case observer:
		k.observerTurn(c, l)
		return
	}
	l, isLocker := c.lock.(locker)
	if _, ok := c.lock.(leaser); ok && (!isLocker || k.rng.IntN(3) == 0) {
		k.bareTurn(c)
		return
	}
	k.lockTurn(c, l, owned)
}

// lockTurn takes a lock without a handle and gives it back.
func (k *worker) lockTurn(c *call, l locker, owned bool) {
	w := k.world
	if !c.take(l) {
		k.checkFree(c, l)
		return
	}
	h := w.checks.held(c, l.Held)
	if owned && k.rng.IntN(3) > 0 {
		k.sleep(k.upTo(w.plan.busy) / 2)
		k.again(c, l)
	}
	if owned && w.kind.name != "mutex" && k.rng.IntN(3) > 0 && k.downgrade(c, h) {
		return
	}
	k.hold(h)
	k.unlock(c, l, h)
}

// unlock gives back a lock that was taken without a handle.
func (k *worker) unlock(c *call, l locker, h *holding) {
	k.now("Unlock " + c.path)
	was := l.Held()
	began := time.Now()
	h.end()
	err := l.Unlock()
	k.log("Unlock %s: %s", c.path, kindOfError(err))
	k.checkFree(c, l)
	most := 1100 * time.Millisecond
	if c.usage().async {
		most = 0
	}
	if took := time.Since(began); took > most {
		k.world.checks.fail("%s: Unlock took %v", k.name, took)
	}
	if c.usage().shared && c.mode == "read" && lost(err) {
		return // RUnlock gives back a lost hold first, which may be another worker's
	}
	if errors.Is(err, queue.ErrReleasePending) {
		k.world.checks.fail("%s: Unlock: %v", k.name, err)
	}
	k.checkUnlock(err, was)
}

// checkFree checks that a lock which only this worker has is not held after it was given back, or could not be had.
func (k *worker) checkFree(c *call, l locker) {
	if !c.usage().shared && !k.world.kind.shared && l.Held() {
		k.world.checks.fail("%s: %s of %s reports held, but nobody holds it", k.name, c.mode, c.path)
	}
}

// take calls Lock or TryLock; it reports whether the lock is held.
func (c *call) take(l locker) bool {
	w := c.world
	w.checks.begin(c)
	var ok bool
	var err error
	if c.try {
		c.now("TryLock " + c.path)
		c.log("TryLock %s", c.path)
		ok, err = l.TryLock(c.ctx)
		c.log("TryLock %s: %v %s", c.path, ok, kindOfError(err))
	} else {
		c.now("Lock " + c.path)
		c.log("Lock %s", c.path)
		err = l.Lock(c.ctx)
		ok = err == nil
		c.log("Lock %s: %s", c.path, kindOfError(err))
	}
	w.checks.finish(c, ok, err)
	return ok
}

// downgrade takes the read lock beside the write lock, and gives that back first. It reports whether it has given back
// both.
func (k *worker) downgrade(c *call, h *holding) bool {
	rw, ok := c.lock.(writer)
	if !ok {
		return false
	}
	d := &call{worker: k, mgr: c.mgr, path: c.path, mode: "read", lock: rw.Reader(), ctx: c.ctx, deadline: c.deadline}
	k.world.checks.begin(d)
	k.now("RLock " + c.path)
	err := rw.RLock(c.ctx)
	k.log("RLock while writing %s: %s", c.path, kindOfError(err))
	if lost(err) && !rw.Held() {
		k.world.checks.finish(d, true, nil)
		return false
	}
	k.world.checks.finish(d, err == nil, err)
	if err != nil {
		return false
	}
	dh := k.world.checks.held(d, rw.Reader().Held)
	k.unlock(c, rw, h)
	k.hold(dh)
	k.unlock(d, rw.Reader(), dh)
	return true
}

// again enters the lock that the owner holds once more.
func (k *worker) again(c *call, l locker) {
	err := l.Lock(c.ctx)
	k.log("Lock again %s: %s", c.path, kindOfError(err))
	switch {
	case err == nil:
		k.sleep(k.upTo(k.world.plan.busy) / 2)
		if err := l.Unlock(); err != nil && !lost(err) && !k.revoked(err) {
			k.world.checks.fail("%s: inner Unlock: %v", k.name, err)
		}
	case lost(err), c.ctx.Err() != nil && errors.Is(err, c.ctx.Err()), k.revoked(err):
	default:
		k.world.checks.fail("%s: re-entrant Lock: %v", k.name, err)
	}
}

// bareTurn takes a lease and releases it.
func (k *worker) bareTurn(c *call) {
	w := k.world
	w.checks.begin(c)
	what, get := "Acquire", c.lock.(leaser).Acquire
	if c.try {
		what, get = "TryAcquire", c.lock.(leaser).TryAcquire
	}
	k.now(what + " " + c.path)
	k.log("%s %s", what, c.path)
	lease, err := get(c.ctx)
	k.log("%s %s: %s", what, c.path, kindOfError(err))
	if c.try && errors.Is(err, queue.ErrBusy) {
		err = nil
	}
	w.checks.finish(c, lease != nil, err)
	if lease == nil {
		return
	}
	h := w.checks.held(c, func() bool { return lease.Err() == nil })
	k.hold(h)
	ctx, cancel := within(time.Duration(1+k.rng.IntN(3000)) * time.Millisecond)
	defer cancel()
	k.now("Release " + c.path)
	was := lease.Err() == nil
	h.end()
	err = lease.Release(ctx)
	k.log("Release %s: %s", c.path, kindOfError(err))
	if errors.Is(err, queue.ErrReleasePending) { // which Release returns when its context ends, or its session, and Unlock never
		err = nil
	}
	k.checkUnlock(err, was)
}

// hold keeps a lock for a while, or until it is lost.
func (k *worker) hold(h *holding) {
	k.now("")
	d := k.upTo(k.world.plan.busy)
	if k.rng.IntN(6) == 0 && k.world.in() == chaos {
		d = k.upTo(4 * k.m.timeout) // longer than the server waits for a client that is cut off
	}
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		k.sleep(min(200*time.Millisecond, time.Until(end)+1))
		if !h.isHeld() {
			k.sleep(k.upTo(time.Second))
			return
		}
	}
}

func lost(err error) bool {
	return errors.Is(err, session.ErrLost) || errors.Is(err, session.ErrClosed)
}

// checkUnlock checks the result of an Unlock. was says whether the lock was held then.
func (k *worker) checkUnlock(err error, was bool) {
	switch {
	case err == nil || errors.Is(err, queue.ErrReleasePending): // which only the Release of a lease returns
		if !was {
			k.world.checks.fail("%s: what was lost was given back: %v", k.name, err)
		}
	case lost(err):
		if was {
			k.world.checks.fail("%s: what was held could not be given back: %v", k.name, err)
		}
	case k.revoked(err):
	default:
		k.world.checks.fail("%s: gave back: %v", k.name, err)
	}
}

// revoked reports whether an error says that a lease was given up because it was revoked.
func (k *worker) revoked(err error) bool {
	return k.world.kind.revocable && (errors.Is(err, queue.ErrReleased) || errors.Is(err, queue.ErrRevoked))
}

// kindOfError returns a word for an error, because the texts have numbers of sessions in them.
func kindOfError(err error) string {
	for _, k := range []struct {
		is   error
		word string
	}{
		{queue.ErrReleasePending, "pending"}, {session.ErrLost, "lost"}, {session.ErrClosed, "closed"},
		{context.Canceled, "canceled"}, {context.DeadlineExceeded, "deadline"}, {queue.ErrBusy, "busy"},
		{queue.ErrReleased, "released"}, {queue.ErrConflict, "conflict"}, {queue.ErrSequence, "sequence"},
		{session.ErrTooManyNodes, "too many nodes"}, {session.ErrInvalid, "invalid"},
	} {
		if errors.Is(err, k.is) {
			return k.word
		}
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}
