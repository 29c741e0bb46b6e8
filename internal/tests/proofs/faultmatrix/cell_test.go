package faultmatrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/referee"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// cell is one run of a lock's trace, with a fault at one of its steps, or without a fault to record the steps. There are
// three contenders: the first one, which holds before us; ours, which the faults meet; and a rival behind ours.
type cell struct {
	*trace
	base   string // the lock's path
	proxy  *zktest.Proxy
	admin  *zk.Conn         // looks behind the library's back
	ours   *session.Manager // through the proxy
	holder *session.Manager // of the first
	rival  *session.Manager
	strike *strike
	at     step // where it strikes
	ref    *referee.Referee
	forced bool // the fault ends our session by force

	waiting  signal // we wait behind the first, or are in or gone already
	holding  signal // we hold, and have nothing to ask
	returned signal // our acquisition has ended
	behind   signal // the rival waits, or has been in

	mu    sync.Mutex
	began time.Time
	log   strings.Builder
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

// oneWay is the delay of the network. With it every lock is held for longer than 5 ms, for which an
// uncontended lock does without a watch on its node. So the steps are the same in every run.
const oneWay = 10 * time.Millisecond

// newCell makes the parts of a cell. The session timeout is ours.
func newCell(t *testing.T, tr *trace, timeout time.Duration) *cell {
	t.Helper()
	connect := func(addr string, timeout time.Duration) *session.Manager {
		return testserver.Connect(t, addr, session.WithTimeout(timeout), session.WithTrace(hooks))
	}
	addr := testserver.Server(t).Addr(0)
	c := &cell{
		trace: tr, base: testserver.Path(t), proxy: zktest.StartProxy(t, addr), admin: testserver.Admin(t),
		strike: new(strike), ref: &referee.Referee{Room: 1}, holder: connect(addr, longTimeout), rival: connect(addr, longTimeout),
		waiting: newSignal(), holding: newSignal(), returned: newSignal(), behind: newSignal(), began: time.Now(),
	}
	c.proxy.Delay(oneWay)
	c.ours = connect(c.proxy.Addr(), timeout)
	return c
}

// run plays the trace, with what goes wrong unless w is nil, and checks all conditions. Without a fault it returns the
// steps.
func (c *cell) run(ctx context.Context, w *wrong) (steps []step, err error) {
	var recorded func() []step
	// No fault may outlive the cell, or wait for a step that will not come.
	playing, stop := context.WithCancel(ctx)
	defer func() { stop(); c.strike.wait() }()

	first, err := c.firstHolds(ctx)
	if err != nil {
		return nil, err
	}
	if w == nil {
		recorded = c.record()
	} else {
		c.at, c.forced = w.at, w.fault.forces
		c.strike = w.fault.start(playing, c, w.at)
	}
	ours, err := c.ours.Session(ctx)
	if err != nil {
		return nil, err
	}
	err = c.play(ctx, first, stop)
	if left := c.nothingLeft(ctx); left != nil {
		err = errors.Join(err, left)
	}
	switch {
	case err != nil:
		return nil, err
	case w == nil:
		err = c.answered(ctx)
		return recorded(), err
	case w.spares() && ours.Err() != nil:
		return nil, errTooSlow
	}
	return nil, nil
}

// play runs all contenders, until the fault is over. Then the lock is as before: it is taken once more.
func (c *cell) play(ctx context.Context, first *hold, stop func()) error {
	var all errgroup.Group
	all.Go(func() error { return c.playOurs(ctx) })
	all.Go(func() error { return c.playRival(ctx) })
	all.Go(func() error { return c.playFirst(ctx, first) })
	if err := cmp.Or(all.Wait(), c.awaitFault(ctx, stop)); err != nil {
		return err
	}
	h, err := c.subject.fresh()(ctx, c.rival, c.base)
	if err != nil {
		return fmt.Errorf("once all was over: %w", err)
	}
	return c.leave(ctx, "another", h)
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
	h, err := c.subject.first(ctx, c.holder, c.base)
	if err != nil {
		return nil, fmt.Errorf("first: %w", err)
	}
	return h, c.enters("the first", h)
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
	h, err := c.subject.rival(whenWaiting(ctx, &c.behind), c.rival, c.base)
	if err != nil {
		return fmt.Errorf("rival: %w", err)
	}
	c.logf("the rival is in")
	return c.leave(ctx, "the rival", h)
}

// enters is called as soon as a lock is granted. No two clients hold at one moment, but where our session is ended by force:
// then we hear of it a moment later.
func (c *cell) enters(who string, h *hold) error {
	if c.forced && who == "we" {
		return nil
	}
	if foul := c.ref.Enter(&referee.Hold{What: who, Weight: 1, Held: func() bool { return h.Err() == nil }}); foul != "" {
		return fmt.Errorf("two holders: %s", foul)
	}
	return nil
}

// leave checks a hold and gives it up at once.
func (c *cell) leave(ctx context.Context, who string, h *hold) error {
	return errors.Join(c.enters(who, h), c.backed(ctx, h), unlessPending(h.Release(ctx)))
}

// nothingLeft waits until there is no contender. All sessions are still open.
func (c *cell) nothingLeft(ctx context.Context) error {
	if _, err := c.ours.Session(ctx); err != nil {
		return err
	}
	for {
		left, err := c.contenders(c.base)
		if err == nil && len(left) == 0 {
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(fmt.Errorf("left behind: %q", left), err)
		}
	}
}

// contenders returns the paths of all contenders at a path and below.
func (c *cell) contenders(dir string) ([]string, error) {
	names, err := c.children(dir)
	var found []string
	for _, name := range names {
		child := path.Join(dir, name)
		if _, ok := queue.ParseNode(name); ok {
			found = append(found, child)
			continue
		}
		below, e := c.contenders(child)
		found, err = append(found, below...), errors.Join(err, e)
	}
	return found, err
}

// children returns the names in a directory, or none if the directory does not exist.
func (c *cell) children(dir string) ([]string, error) {
	names, _, err := c.admin.Children(dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

func (c *cell) logf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(&c.log, "%8.3fs  %s\n", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
}
