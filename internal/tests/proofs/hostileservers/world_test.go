package hostileservers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/referee"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	lockPath = "/locks/one"
	timeout  = 6 * time.Second
	tick     = 2 * time.Second // told, so that no session is opened but those of the attacks

	rounds   = 6 // acquisitions under attack, each
	patience = 5 * time.Second
	hold     = 300 * time.Millisecond

	slack     = time.Second     // beyond what a call may take
	closeTime = 5 * time.Second // as Manager.Close promises
	recovery  = time.Minute     // a session's timeout, and the waits between attempts, at the most

	// busiest is more requests than a run sends in a second, and far fewer than a loop that spins
	// sends, because an answer takes a few microseconds here.
	busiest = 500

	// maxAlloc is far more than a run needs, which is 1.5 MB for each connection, and less than a
	// server can make a client allocate with one number.
	maxAlloc = 1 << 30
)

// world is one run.
type world struct {
	*bubble.World
	middle *middle
	kind   kind
	ref    *referee.Referee

	mu  sync.Mutex
	log []string
}

// attack plays a script, and checks all conditions. It returns the errors and the log of the victim, and prints them if a
// condition is broken.
func attack(t *testing.T, script []step, k kind) (log []string) {
	t.Helper()
	var from, to runtime.MemStats
	runtime.ReadMemStats(&from)
	inWorld(t, k, func(w *world) {
		w.run(script)
		if log = w.log; w.Failed() {
			w.Log(strings.Join(log, "\n"))
		}
	})
	runtime.ReadMemStats(&to)
	if n := to.TotalAlloc - from.TotalAlloc; n > maxAlloc {
		t.Errorf("%d MB of memory were asked for", n>>20)
	}
	return log
}

// inWorld runs f in a world of its own.
func inWorld(t *testing.T, k kind, f func(*world)) {
	t.Helper()
	bubble.Run(t, func(w *bubble.World) {
		f(&world{World: w, kind: k, ref: &referee.Referee{Room: k.room}, middle: &middle{dialS: w.Dialer()}})
	}, zktest.TickTime(500*time.Millisecond))
}

// open connects the honest client and the victim. The caller must call close.
func (w *world) open(script []step) (honest, victim *session.Manager) {
	w.middle.script = script
	for _, dir := range w.kind.paths() {
		w.Make(dir, "")
	}
	return w.Connect(session.WithTimeout(timeout)), w.connectVictim()
}

func (w *world) close(honest, victim *session.Manager) {
	for _, m := range []*session.Manager{victim, honest} {
		w.within("Close", closeTime, func() { _ = m.Close() })
	}
	w.middle.links.Wait()
}

func (w *world) run(script []step) {
	honest, victim := w.open(script)
	defer w.close(honest, victim)
	honestLock, victimLock := w.lock(honest), w.lock(victim)
	var all sync.WaitGroup
	all.Go(func() { w.contend("honest", honestLock) })
	for range w.kind.crowd {
		all.Go(func() { w.contend("victim", victimLock) })
	}
	all.Wait()

	w.middle.calm()
	if n := w.middle.most(); n > busiest {
		w.fail("%d requests in one second", n)
	}
	w.logf("the attack is over; done: %v", w.middle.done())
	if w.lied() {
		return
	}
	for i := range 3 {
		w.round("honest", honestLock, i, recovery, true)
		w.round("victim", victimLock, i, recovery, true)
	}
	w.empty()
}

func (w *world) logf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// fail reports a failure with all actions up to now.
func (w *world) fail(format string, args ...any) {
	w.Helper()
	w.Errorf("%s\ndone: %v", fmt.Sprintf(format, args...), w.middle.done())
}

func (w *world) lied() bool {
	for _, s := range w.middle.done() {
		if s.lies() {
			return true
		}
	}
	return false
}

// connectVictim connects through the man in the middle, which may refuse at first.
func (w *world) connectVictim() *session.Manager {
	opts := []session.Option{
		session.WithTimeout(timeout), session.WithTickTime(tick), session.WithDialer(w.middle.dial),
		session.WithLogger(slog.New(slog.NewTextHandler(logWriter{w}, &slog.HandlerOptions{Level: slog.LevelDebug}))),
	}
	for range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		var m *session.Manager
		var err error
		w.within("Connect", patience, func() { m, err = session.Connect(ctx, "victim", opts...) })
		cancel()
		if err == nil {
			return m
		}
		w.logf("connect: %v", err)
		// A timeout that the server grants can be too short for the tick that it was told to have.
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, session.ErrInvalid) {
			w.fail("connect: %v", err)
		}
	}
	w.middle.calm()
	w.logf("connecting did not work: the attack is over")
	return w.Connect(opts...)
}

type logWriter struct{ w *world }

func (l logWriter) Write(p []byte) (int, error) {
	l.w.logf("%s", p)
	return len(p), nil
}

func (w *world) lock(m *session.Manager) contender {
	get, err := w.kind.open(m)
	w.Must(err)
	return contender{m, get}
}

type contender struct {
	m   *session.Manager
	get get
}

func (w *world) contend(who string, c contender) {
	for i := range rounds {
		w.round(who, c, i, patience, false)
		time.Sleep(50 * time.Millisecond)
	}
}

// round takes the lock and gives it back. Both may fail, unless must is set.
func (w *world) round(who string, c contender, i int, patience time.Duration, must bool) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var g *grant
	var err error
	w.within("Acquire", patience, func() { g, err = c.get(ctx, i) })
	if err != nil {
		w.logf("%s: acquire: %v", who, err)
		if must {
			w.fail("%s: once the attack is over: %v", who, err)
		}
		return
	}
	held := &referee.Hold{What: nodesOf(g) + " of " + who, Weight: g.weight, Held: func() bool { return g.Err() == nil }}
	if foul := w.ref.Enter(held); foul != "" && !w.lied() {
		w.fail("%s came in: %s", who, foul)
	}
	w.check(who, c, g)
	time.Sleep(hold)
	w.check(who, c, g)
	w.ref.Leave(held)
	release, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w.within("Release", patience, func() { err = g.Release(release) })
	if err != nil {
		w.logf("%s: release: %v", who, err)
		if must {
			w.fail("%s: release, once the attack is over: %v", who, err)
		}
	}
}

// check looks at the tree. While a lease reports held, its node is there, in a directory of the lock, and owned by the
// session that the server gave. The referee checks that there is room for it.
func (w *world) check(who string, c contender, g *grant) {
	for _, lease := range g.leases {
		stat, err := w.Admin().Exists(w.Context(), lease.Path())
		w.Must(err)
		_, ok := queue.ParseNode(path.Base(lease.Path()))
		if lease.Err() != nil || w.lied() {
			continue
		}
		switch {
		case !ok || !slices.Contains(w.kind.paths(), path.Dir(lease.Path())):
			w.fail("%s holds %q", who, lease.Path())
		case stat == nil:
			w.fail("%s holds the lock with %s, which is not there", who, lease.Path())
		case who == "victim" && !w.middle.gave(stat.EphemeralOwner):
			w.fail("%s holds the lock with another's node: %s of session %x", who, lease.Path(), stat.EphemeralOwner)
		}
		if now, err := c.m.Session(w.Context()); err == nil && stat != nil && lease.Err() == nil && now.ID() != stat.EphemeralOwner {
			w.fail("%s holds the lock with a node of session %x, and has session %x", who, stat.EphemeralOwner, now.ID())
		}
	}
}

// empty waits until no node of any client is left.
func (w *world) empty() {
	var left []string
	for end := time.Now().Add(recovery); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		left = nil
		for _, dir := range w.kind.paths() {
			left = append(left, w.Nodes(dir)...)
		}
		if len(left) == 0 {
			return
		}
	}
	w.fail("%v after the end there are still %v", recovery, left)
}

// within checks that a call ends in time.
func (w *world) within(what string, limit time.Duration, f func()) {
	w.Helper()
	begin := time.Now()
	f()
	if took := time.Since(begin); took > limit+slack {
		w.fail("%s took %v, %v is the limit", what, took, limit)
	}
}
