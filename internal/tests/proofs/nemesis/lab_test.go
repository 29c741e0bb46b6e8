//go:build linux

package nemesis

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// labTick is ZooKeeper's default.
const labTick = 2 * time.Second

// lab is an ensemble with ZooKeeper's default tick, and clients in this process that do what they are told: a holder
// of a lock, and a rival that waits for it. When a rival gets its lock, it has the others say whether they hold. What
// all of them say is judged as what workers write down.
type lab struct {
	*trial
	*zktest.Ensemble
	ctx   context.Context
	turns atomic.Int64

	mu      sync.Mutex // guards what follows
	clients []*session.Manager
	holds   []*held
	book    []event
}

// newLab starts servers. They have ZooKeeper's defaults for whatever the options do not change.
func newLab(t *trial, servers int, opts ...zktest.RealOption) *lab {
	t.Helper()
	return labOf(t, zktest.StartReal(t, append([]zktest.RealOption{
		zktest.Servers(servers), zktest.TickTime(labTick), zktest.MaxSessionTimeout(20 * labTick),
	}, opts...)...))
}

func labOf(t *trial, e *zktest.Ensemble) *lab {
	t.Helper()
	l := &lab{trial: t, Ensemble: e}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour+*forFlag)
	t.Cleanup(cancel)
	t.Cleanup(l.closeClients)
	l.ctx = ctx
	return l
}

// eventually waits for what must happen, on a busy machine.
func (l *lab) eventually(what string, ok func() bool) {
	l.Helper()
	zktest.Eventually(l.T, 2*time.Minute, what, ok)
}

// connect returns a manager of its own.
func (l *lab) connect(ctx context.Context, servers string, timeout time.Duration, opts ...session.Option) (*session.Manager, error) {
	m, err := session.Connect(ctx, servers, append([]session.Option{
		session.WithTimeout(timeout), session.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.clients = append(l.clients, m)
	}
	return m, err
}

// mutex returns the lock at a path, of a client with a session of its own.
func (l *lab) mutex(servers, path string, timeout time.Duration) *zklock.Mutex {
	l.Helper()
	m, err := l.connect(l.ctx, servers, timeout, session.WithTickTime(labTick))
	l.must(err)
	mx, err := zklock.New(m, path)
	l.must(err)
	return mx
}

// closeClients ends all sessions. Their servers may be gone.
func (l *lab) closeClients() {
	l.mu.Lock()
	clients := l.clients
	l.clients, l.holds = nil, nil
	l.mu.Unlock()
	var all sync.WaitGroup
	for _, m := range clients {
		all.Go(func() { _ = m.Close() })
	}
	all.Wait()
}

// held is a hold of a client.
type held struct {
	*lab
	*queue.Lease
	session *session.Session
	path    string
	turn    int
	over    atomic.Bool // it has been given back
}

func (h *held) note(e event) {
	e.Lock, e.Life, e.Turn, e.To = h.path, 1, h.turn, now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.book = append(h.book, e)
}

// isHeld reports whether the client believes in its hold or its session, and writes that down.
func (h *held) isHeld() bool {
	from := now()
	holds := h.Err() == nil || !h.over.Load() && h.session.Remaining() > 0
	h.note(event{What: eventLook, From: from, Held: holds})
	return holds
}

func (h *held) release() error {
	h.over.Store(true)
	from := now()
	err := h.Release(h.ctx)
	h.note(event{What: eventFree, From: from, Error: text(err)})
	return err
}

// acquire takes a lock, for as long as ctx allows.
func (l *lab) acquire(ctx context.Context, mx *zklock.Mutex) (*held, error) {
	from := now()
	lease, err := mx.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	h := &held{lab: l, Lease: lease, path: mx.Path(), turn: int(l.turns.Add(1)), session: mx.Manager().Status().Session}
	h.note(event{What: eventGot, From: from})
	h.isHeld()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds = append(l.holds, h)
	return h, nil
}

// take takes a lock, and returns its token too.
func (l *lab) take(mx *zklock.Mutex) (*held, int64) {
	l.Helper()
	h, err := l.acquire(l.ctx, mx)
	l.must(err)
	from := now()
	token, err := h.Token(l.ctx)
	l.must(err)
	h.note(event{What: eventToken, From: from, Token: token})
	return h, token
}

// others has the former holders say whether they hold, until none does. It returns for how long one of them did.
func (h *held) others(ctx context.Context) (by time.Duration) {
	h.mu.Lock()
	before := h.lab.holds[:len(h.lab.holds):len(h.lab.holds)]
	h.mu.Unlock()
	began := time.Now()
	for _, o := range before {
		for o != h && o.path == h.path && ctx.Err() == nil && o.isHeld() {
			by = time.Since(began)
			pause(ctx, time.Millisecond)
		}
	}
	h.isHeld()
	return by
}

// rival waits for a lock.
type rival struct {
	done chan struct{} // closed when it has its lock, and nobody else believes in it; or for err
	held *held
	err  error
	at   time.Time     // when it had the lock
	by   time.Duration // for how long somebody else believed in it after that
}

// contend has a rival wait for a lock, behind its holder.
func (l *lab) contend(mx *zklock.Mutex) *rival {
	l.Helper()
	r := l.contendWithin(l.ctx, mx)
	l.must(queued(l.ctx, mx))
	return r
}

// queued waits until somebody waits for a lock.
func queued(ctx context.Context, mx *zklock.Mutex) error {
	for pause(ctx, 5*time.Millisecond) {
		if all, err := mx.Contenders(ctx); err == nil && len(all) > 1 {
			return nil
		}
	}
	return ctx.Err()
}

func (l *lab) contendWithin(ctx context.Context, mx *zklock.Mutex) *rival {
	r := &rival{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		if r.held, r.err = l.acquire(ctx, mx); r.err == nil {
			r.at = time.Now()
			r.by = r.held.others(ctx)
		}
	}()
	return r
}

// pair has a client of some servers hold a lock, and a rival of all servers wait for it.
func (l *lab) pair(servers, path string, timeout time.Duration) (*held, *rival) {
	l.Helper()
	h, _ := l.take(l.mutex(servers, path, timeout))
	return h, l.contend(l.mutex(l.ConnectString(), path, timeout))
}

// gets waits until the rival has its lock.
func (l *lab) gets(r *rival) *held {
	l.Helper()
	select {
	case <-r.done:
	case <-time.After(2 * time.Minute):
		l.Fatal("the rival does not get the lock")
	}
	l.must(r.err)
	return r.held
}

// mustWait fails the test if the rival has got its lock.
func (l *lab) mustWait(r *rival, why string) {
	l.Helper()
	select {
	case <-r.done:
		l.Errorf("the rival got the lock, although %s: %v", why, r.err)
	default:
	}
}

// judge judges all holds. It reports them, unless two holders are expected: then it returns how often there were two.
func (l *lab) judge(what string, expected bool) (violations int) {
	l.Helper()
	of := make(map[string][]event)
	l.mu.Lock()
	for _, e := range l.book {
		of[e.Lock] = append(of[e.Lock], e)
	}
	l.mu.Unlock()
	var v verdict
	for _, events := range of {
		v.add(judge(rule{}, events, nil))
	}
	if expected {
		l.figure("violations are expected")
	}
	l.report(what, int(l.turns.Load()), v, expected)
	return len(v.violations)
}

// plain returns a client of one server, without the library.
func (l *lab) plain(i int) *zk.Conn {
	l.Helper()
	conn, _, err := zk.Connect([]string{l.Addr(i)}, 10*time.Second, zk.WithLogger(silent{}))
	l.must(err)
	l.Cleanup(conn.Close)
	return conn
}

// leader returns the server that leads.
func (l *lab) leader() int {
	l.Helper()
	i, err := l.Leader(l.ctx)
	l.must(err)
	return i
}

// all does something to all servers at once.
func (l *lab) all(do func(int) error) {
	l.Helper()
	errs := make([]error, l.Len())
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	l.must(errors.Join(errs...))
}

// loses waits for a session timeout from when no write can be agreed to any more. By then a client must know that it has
// lost its hold.
func (l *lab) loses(h *held, timeout time.Duration) {
	l.Helper()
	pause(l.ctx, timeout)
	if h.isHeld() {
		l.Errorf("the holder still believes in its lock, %v after the last write", timeout)
	}
}
