package hostile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
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

	// maxAlloc is far more than a run needs, a megabyte and a half for each connection, and
	// less than what a server can ask for with one number.
	maxAlloc = 1 << 30
)

// world is one run.
type world struct {
	*testing.T
	server *zktest.Server
	middle *middle
	admin  *session.Manager
	unfair bool

	mu   sync.Mutex
	held map[*queue.Lease]string // by whom
	log  []string
}

// attack plays a script, and checks what must hold. It returns what the victim was told
// and what it logged.
func attack(t *testing.T, script []step, unfair bool) (log []string) {
	t.Helper()
	var from, to runtime.MemStats
	runtime.ReadMemStats(&from)
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, unfair: unfair, held: make(map[*queue.Lease]string)}
		w.run(script)
		log = w.log
	})
	runtime.ReadMemStats(&to)
	if n := to.TotalAlloc - from.TotalAlloc; n > maxAlloc {
		t.Errorf("%d MB of memory were asked for", n>>20)
	}
	return log
}

func (w *world) run(script []step) {
	server, err := zktest.New(zktest.WithTick(500 * time.Millisecond))
	if err != nil {
		w.Fatal(err)
	}
	defer server.Close()
	w.server = server
	w.middle = &middle{dialS: server.Dialer(), script: script}
	w.admin = w.connect("admin", server.Dialer())
	s, err := w.admin.Session(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	for _, dir := range []string{path.Dir(lockPath), lockPath} {
		if _, err := s.Create(context.Background(), dir, nil, session.Persistent); err != nil {
			w.Fatal(err)
		}
	}
	honest := w.connect("honest", server.Dialer())
	victim := w.connectVictim()
	defer func() {
		for _, m := range []*session.Manager{victim, honest, w.admin} {
			w.within("Close", closeTime, func() { _ = m.Close() })
		}
		w.middle.links.Wait()
	}()
	var both sync.WaitGroup
	both.Go(func() { w.contend("honest", honest) })
	w.contend("victim", victim)
	both.Wait()

	w.middle.calm()
	w.logf("the attack is over; done: %v", w.middle.done())
	if w.lied() {
		return
	}
	w.round("honest", w.lock(honest), recovery, true)
	w.round("victim", w.lock(victim), recovery, true)
	w.empty()
}

func (w *world) logf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// fail reports with what was done up to now.
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

func (w *world) connect(name string, dial func(context.Context, string, string) (net.Conn, error)) *session.Manager {
	ctx, cancel := context.WithTimeout(context.Background(), recovery)
	defer cancel()
	m, err := session.Connect(ctx, name, session.WithTimeout(timeout), session.WithTickTime(tick), session.WithDialer(dial),
		session.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		w.Fatal(err)
	}
	return m
}

// connectVictim connects through the man in the middle, who may not let it at first.
func (w *world) connectVictim() *session.Manager {
	for range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		var m *session.Manager
		var err error
		w.within("Connect", patience, func() {
			m, err = session.Connect(ctx, "victim", session.WithTimeout(timeout), session.WithTickTime(tick), session.WithDialer(w.middle.dial),
				session.WithLogger(slog.New(slog.NewTextHandler(logWriter{w}, nil))))
		})
		cancel()
		if err == nil {
			return m
		}
		w.logf("connect: %v", err)
		if !errors.Is(err, context.DeadlineExceeded) {
			w.fail("connect: %v", err)
		}
	}
	w.middle.calm()
	w.logf("connecting did not work: the attack is over")
	return w.connect("victim", w.middle.dial)
}

type logWriter struct{ w *world }

func (l logWriter) Write(p []byte) (int, error) {
	l.w.logf("%s", p)
	return len(p), nil
}

func (w *world) lock(m *session.Manager) contender {
	var opts []zklock.Option
	if w.unfair {
		opts = append(opts, zklock.WithUnfair())
	}
	mx, err := zklock.New(m, lockPath, opts...)
	if err != nil {
		w.Fatal(err)
	}
	return contender{m, mx}
}

type contender struct {
	m *session.Manager
	*zklock.Mutex
}

func (w *world) contend(who string, m *session.Manager) {
	c := w.lock(m)
	for range rounds {
		w.round(who, c, patience, false)
		time.Sleep(50 * time.Millisecond)
	}
}

// round takes the lock and gives it back. Both may fail, unless they must not.
func (w *world) round(who string, c contender, patience time.Duration, must bool) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var lease *queue.Lease
	var err error
	w.within("Acquire", patience, func() { lease, err = c.Acquire(ctx) })
	if err != nil {
		w.logf("%s: acquire: %v", who, err)
		if must {
			w.fail("%s: once the attack is over: %v", who, err)
		}
		return
	}
	w.granted(who, lease)
	w.check(who, c, lease)
	time.Sleep(hold)
	w.check(who, c, lease)
	w.mu.Lock()
	delete(w.held, lease)
	w.mu.Unlock()
	release, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w.within("Release", patience, func() { err = lease.Release(release) })
	if err != nil {
		w.logf("%s: release: %v", who, err)
		if must {
			w.fail("%s: release, once the attack is over: %v", who, err)
		}
	}
}

// granted checks that nobody else holds the lock.
func (w *world) granted(who string, lease *queue.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for other, whose := range w.held {
		if lease.Err() == nil && other.Err() == nil && !w.lied() {
			w.fail("%s has the lock with %s, and %s with %s", who, lease.Path(), whose, other.Path())
		}
	}
	w.held[lease] = who
}

// check looks at the tree: while the lease says that it is held, its node is the first, and
// is owned by the session that the server gave.
func (w *world) check(who string, c contender, lease *queue.Lease) {
	s, err := w.admin.Session(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	names, _, err := s.Children(context.Background(), lockPath)
	if err != nil {
		w.logf("look: %v", err)
	}
	stat, err := s.Exists(context.Background(), lease.Path())
	if err != nil {
		w.Fatal(err)
	}
	own, ok := queue.ParseNode(path.Base(lease.Path()))
	if lease.Err() != nil || w.lied() {
		return
	}
	switch {
	case !ok || path.Dir(lease.Path()) != lockPath:
		w.fail("%s holds %q", who, lease.Path())
	case stat == nil:
		w.fail("%s holds the lock with %s, which is not there", who, lease.Path())
	case who == "victim" && !w.middle.gave(stat.EphemeralOwner):
		w.fail("%s holds the lock with another's node: %s of session %x", who, lease.Path(), stat.EphemeralOwner)
	}
	for _, name := range names {
		if n, ok := queue.ParseNode(name); ok && n.Sequence < own.Sequence {
			w.fail("%s holds the lock with %s, and before it is %s", who, lease.Path(), name)
		}
	}
	if now, err := c.m.Session(context.Background()); err == nil && stat != nil && lease.Err() == nil && now.ID() != stat.EphemeralOwner {
		w.fail("%s holds the lock with a node of session %x, and has session %x", who, stat.EphemeralOwner, now.ID())
	}
}

// empty waits until nothing is left of anybody.
func (w *world) empty() {
	s, err := w.admin.Session(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	var names []string
	for end := time.Now().Add(recovery); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if names, _, err = s.Children(context.Background(), lockPath); err != nil || len(names) == 0 {
			return
		}
	}
	w.fail("%v after the end there are still %v", recovery, names)
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
