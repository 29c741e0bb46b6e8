package faultmatrix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// cell is one run of a lock's trace, with a fault at one of its steps, or without a fault to record the steps. There are three contenders: the first one, which holds
// before us; ours, which the faults meet; and a rival behind ours.
type cell struct {
	*trace
	site    *site
	base    string // the lock's path
	proxy   *zktest.Proxy
	ours    *session.Manager
	strike  *strike
	at      step // where it strikes
	referee referee

	waiting  signal // we wait behind the first, or are in or gone already
	entered  signal // we hold, or are gone
	holding  signal // we hold, and have nothing to ask
	returned signal // our acquisition has ended
	behind   signal // the rival waits, or has been in
	done     signal // all of these have ended

	mu    sync.Mutex
	began time.Time
	log   strings.Builder
}

// outcome is what a cell has measured.
type outcome struct {
	steps []step        // of a recording
	fresh time.Duration // from when all was healed until a fresh client had the lock
	kept  bool          // our session has survived
	late  bool          // another was in before we had heard that we are out, by force
}

// signal is an event that happens once, for goroutines that wait already or begin to later.
type signal struct {
	once sync.Once
	ch   chan struct{}
}

func newSignal() signal { return signal{ch: make(chan struct{})} }

func (s *signal) fire() { s.once.Do(func() { close(s.ch) }) }

func (s *signal) fired() bool { return closed(s.ch) }

// whenWaiting returns a context for an acquisition, and fires the signal when the acquisition waits
// with all its watches set, and has been told who is ahead. Then nothing is on its way.
func whenWaiting(ctx context.Context, s *signal) context.Context {
	return context.WithValue(ctx, waitingKey{}, s)
}

type waitingKey struct{}

// hooks change no request: package otelzk has the test. So the matrix tries what users without hooks have, too.
var hooks = session.Trace{Watch: func(ctx context.Context, w session.WatchInfo) (context.Context, func(error)) {
	s, ok := ctx.Value(waitingKey{}).(*signal)
	if !ok {
		return ctx, nil
	}
	return ctx, testserver.WhenKnown(w, s.fire)
}}

const serverTick = 200 * time.Millisecond

// options are those of all managers, which log nothing.
func options(timeout time.Duration) []session.Option {
	return []session.Option{
		session.WithTimeout(timeout), session.WithTickTime(serverTick), session.WithTrace(hooks),
		session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
	}
}

func connect(addr string, timeout time.Duration, opts ...session.Option) (*session.Manager, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return session.Connect(ctx, addr, append(options(timeout), opts...)...)
}

// oneWay is the delay of the network. With it every lock is held for longer than 5 ms, for which an
// uncontended lock does without a watch on its node. So the steps are the same in every run.
const oneWay = 10 * time.Millisecond

// newCell makes the parts of a cell. The session timeout is ours.
func newCell(t *testing.T, s *site, tr *trace, timeout time.Duration) *cell {
	t.Helper()
	c := &cell{
		trace: tr, site: s, base: testserver.Path(t),
		proxy: zktest.StartProxy(t, s.server.Addr(0)), strike: new(strike),
		waiting: newSignal(), entered: newSignal(), holding: newSignal(), returned: newSignal(),
		behind: newSignal(), done: newSignal(), began: time.Now(),
	}
	c.proxy.Delay(oneWay)
	var err error
	if c.ours, err = connect(c.proxy.Addr(), timeout); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.ours.Close() })
	return c
}

// run plays the trace, with what goes wrong unless w is nil, and checks all conditions.
func (c *cell) run(ctx context.Context, w *wrong) (out outcome, err error) {
	var recorded func() []step
	// No fault may outlive the cell, or wait for a step that will not come.
	playing, stop := context.WithCancel(ctx)
	defer func() { stop(); c.strike.wait() }()

	first, err := c.firstHolds(ctx)
	if err != nil {
		return out, err
	}
	if w == nil {
		recorded = c.record()
	} else {
		c.at, c.referee.forced = w.at, w.fault.forces
		c.strike = w.fault.start(playing, c, w.at)
	}
	ours, err := c.ours.Session(ctx)
	if err != nil {
		return out, err
	}
	out.fresh, err = c.play(ctx, first, stop)
	if left := c.nothingLeft(ctx); left != nil {
		err = errors.Join(err, left)
	}
	if err != nil {
		return out, err
	}
	if recorded != nil {
		if err := c.answered(ctx); err != nil {
			return out, err
		}
		out.steps = recorded()
	}
	out.kept, out.late = ours.Err() == nil, c.referee.late
	if w != nil && w.spares() && !out.kept {
		return out, errTooSlow
	}
	return out, nil
}

// play runs all contenders, until the fault is over. It returns how long the fresh client took.
func (c *cell) play(ctx context.Context, first *hold, stop func()) (fresh time.Duration, err error) {
	var all, others errgroup.Group
	others.Go(func() error { return c.playOurs(ctx) })
	others.Go(func() error { return c.playRival(ctx) })
	others.Go(func() error { return c.playFirst(ctx, first) })
	all.Go(func() error {
		err := others.Wait()
		c.done.fire()
		if fault := c.awaitFault(ctx, stop); err == nil {
			err = fault
		}
		return err
	})
	all.Go(func() (err error) {
		fresh, err = c.playFresh(ctx)
		return err
	})
	err = all.Wait()
	return fresh, err
}

// errNotStruck says that all was well but for the fault. Such a cell is tried again: on a busy machine the
// connection can be lost before the fault, and now and then two requests that are sent at
// once go in the other order, and a third is not needed.
var errNotStruck = errors.New("the fault has not struck: what it was for has not come")

// errTooSlow says that all was well but for our session, which has not survived a connection that was cut. On a
// busy machine that can happen. So such a cell is tried again, too.
var errTooSlow = errors.New("a connection was cut, and the session is lost")

// awaitFault waits until the faults have struck and are healed. It calls stop when it is too late for one of
// them.
func (c *cell) awaitFault(ctx context.Context, stop func()) error {
	if c.strike.over == nil {
		return nil
	}
	c.awaitHit(ctx, c.strike)
	if !c.strike.struck() {
		stop()
	}
	<-c.strike.over
	if !c.strike.struck() {
		return errNotStruck
	}
	return c.strike.err
}

// awaitHit waits until a fault has struck, or it is too late for it. All requests have been sent by now,
// except the last ones of the cleanup behind a cancelled acquisition. So it is too late when nothing is
// left, and ours has been told so.
func (c *cell) awaitHit(ctx context.Context, k *strike) {
	waiting, cancel := context.WithTimeout(ctx, testserver.Patience)
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-k.hit:
		case <-waiting.Done():
		}
	}()
	if c.nothingLeft(waiting) == nil {
		_ = c.answered(waiting)
	}
}

// answered waits until ours has the answers to all requests that it has sent.
func (c *cell) answered(ctx context.Context) error {
	s, err := c.ours.Session(ctx)
	if err == nil {
		err = s.Sync(ctx, "/")
	}
	return err
}

func (c *cell) firstHolds(ctx context.Context) (*hold, error) {
	if c.subject.first == nil {
		return nil, nil
	}
	h, err := c.subject.first(ctx, c.site.holders, c.base)
	if err != nil {
		return nil, fmt.Errorf("first: %w", err)
	}
	return h, c.referee.enter(ctx, "the first", h)
}

// playFirst releases the lock when the others wait.
func (c *cell) playFirst(ctx context.Context, h *hold) error {
	if h == nil {
		return nil
	}
	for _, s := range []*signal{&c.waiting, &c.behind} {
		select {
		case <-s.ch:
		case <-ctx.Done():
			return errors.New("first: the others have not come to wait")
		}
	}
	if c.at == whileWaiting {
		if err := c.back(ctx); err != nil {
			return err
		}
	}
	c.logf("the first leaves")
	if err := unlessPending(h.Release(ctx)); err != nil {
		return fmt.Errorf("first: %w", err)
	}
	return nil
}

// back waits until the fault is over and our connection is there again.
func (c *cell) back(ctx context.Context) error {
	c.strike.wait()
	return c.connected(ctx)
}

// connected waits until our session has a connection that is of use.
func (c *cell) connected(ctx context.Context) error {
	for {
		s, err := c.ours.Session(ctx)
		if err != nil {
			return err
		}
		if s.Sync(ctx, "/") == nil {
			return nil
		}
	}
}

// playRival enters behind ours, or when the fault has struck, and releases the lock at once.
func (c *cell) playRival(ctx context.Context) error {
	defer c.behind.fire()
	comes := &c.waiting
	if c.cancels {
		comes = &c.returned
	}
	select {
	case <-comes.ch:
	case <-c.strike.hit:
	case <-ctx.Done():
		return errors.New("rival: we have not come")
	}
	if c.at == (step{}) { // Without a fault nothing keeps it waiting.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, testserver.Patience)
		defer cancel()
	}
	h, err := c.subject.rival(whenWaiting(ctx, &c.behind), c.site.rivals, c.base)
	if err != nil {
		return fmt.Errorf("rival: %w", err)
	}
	c.logf("the rival is in")
	err = errors.Join(c.referee.enter(ctx, "the rival", h), c.backed(ctx, h))
	return errors.Join(err, unlessPending(h.Release(ctx)))
}

// playFresh starts a new client as soon as all faults are over, and measures how long it takes until
// that client has the lock. The clients ahead of it first have to recover from the fault, get the
// lock, and leave.
func (c *cell) playFresh(ctx context.Context) (time.Duration, error) {
	over := c.strike.over
	if over == nil {
		over = c.done.ch
	}
	select {
	case <-over:
	case <-ctx.Done():
		return 0, nil // the others say what is wrong
	}
	began := time.Now()
	m, err := connect(c.site.server.Addr(0), longTimeout)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	h, err := c.subject.fresh()(ctx, m, c.base)
	took := time.Since(began)
	if err != nil {
		return 0, fmt.Errorf("fresh client, after %v: %w", took, err)
	}
	c.logf("a fresh client is in, after %v", took)
	err = errors.Join(c.referee.enter(ctx, "a fresh client", h), c.backed(ctx, h))
	return took, errors.Join(err, unlessPending(h.Release(ctx)))
}

// nothingLeft waits until there is no contender. All sessions are still open.
func (c *cell) nothingLeft(ctx context.Context) error {
	if _, err := c.ours.Session(ctx); err != nil {
		return err
	}
	for {
		left, err := c.site.contenders(ctx, c.base)
		if err == nil && len(left) == 0 {
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(fmt.Errorf("left behind: %q", left), err)
		}
	}
}

func (c *cell) logf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(&c.log, "%8.3fs  %s\n", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
}
