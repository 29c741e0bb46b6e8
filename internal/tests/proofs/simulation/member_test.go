package simulation

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/session"
)

// member is a process: one manager at a time, closed and opened again now and then.
type member struct {
	w       *world
	party   int
	name    string
	timeout time.Duration
	knows   knowledge
	end     *endpoint

	maxNodes int // 0: the default

	rng *rand.Rand

	mu      sync.Mutex
	manager *session.Manager // nil while there is none
	locks   map[string]map[string]any
	changed chan struct{}
	session int64     // the latest; 0 for none
	since   time.Time // when session was set
	up      bool
	closing time.Time // when Close was last called
	keep    time.Time // until then its workers keep what they hold
}

func newMember(w *world, i int) *member {
	m := &member{
		w: w, party: firstManager + i, name: "m" + strconv.Itoa(i+1),
		timeout: w.plan.timeouts[i], knows: w.plan.knows[i],
		rng:     rand.New(rand.NewPCG(w.seed, 100+uint64(i))),
		changed: make(chan struct{}),
	}
	m.end = newEndpoint(w, m.party, m.name)
	m.end.noProbe = m.knows == ignorant
	if h := mix(w.seed, "nodes", i); (w.kind.hostile || w.kind.fewNodes) && h%2 == 0 {
		m.maxNodes = 1 + int(h>>8%5)
	}
	return m
}

// steps waits longer each time, in whole milliseconds and not at random. With random waits, the
// scheduler would choose which of several goroutines at one instant gets which wait.
type steps struct{ first, next, most time.Duration }

func (s *steps) NextBackOff() time.Duration {
	d := max(s.next, s.first)
	s.next = min(2*d, s.most)
	return d
}
func (s *steps) Reset() { s.next = 0 }

// retry returns the manager's WithRetry.
func retry(seed uint64, party int) func() backoff.BackOff {
	first := between(mix(seed, "retry", party), 10*time.Millisecond, 60*time.Millisecond).Truncate(time.Millisecond)
	most := between(mix(seed, "most", party), 200*time.Millisecond, 900*time.Millisecond).Truncate(time.Millisecond)
	return func() backoff.BackOff { return &steps{first: first, most: most} }
}

// run opens and closes managers until stop. The last one stays open.
func (m *member) run(stop <-chan struct{}) {
	m.w.sleep(m.party, time.Duration(m.rng.IntN(300))*time.Millisecond)
	for {
		if !m.open(stop) {
			return
		}
		life := time.Duration(m.rng.IntN(60)) * time.Second
		if m.rng.IntN(3) == 0 {
			life = time.Duration(1+m.rng.IntN(8)) * time.Second
		}
		m.w.sleep(m.party, life)
		if m.w.in() != chaos {
			return
		}
		m.close()
		m.w.sleep(m.party, time.Duration(m.rng.IntN(1500))*time.Millisecond)
	}
}

// open tries to connect until that succeeds or stop is closed.
func (m *member) open(stop <-chan struct{}) bool {
	for {
		ctx, cancel := within(20 * time.Second)
		opts := []session.Option{
			session.WithTimeout(m.timeout),
			session.WithConnectTimeout(m.timeout / 3),
			session.WithDialer(m.end.dial),
			session.WithRetry(retry(m.w.seed, m.party)),
			session.WithLogger(quiet()),
			session.WithTrace(m.hooks()),
		}
		if m.maxNodes > 0 {
			opts = append(opts, session.WithMaxNodes(m.maxNodes))
		}
		if m.knows == told {
			opts = append(opts, session.WithTickTime(m.w.plan.tick))
		}
		mgr, err := session.Connect(ctx, "zookeeper:2181", opts...)
		cancel()
		if err == nil {
			m.w.trace.add(m.name, "open")
			(*core.Manager)(mgr).SetWindow(m.w.plan.window)
			m.mu.Lock()
			m.manager, m.locks = mgr, make(map[string]map[string]any)
			close(m.changed)
			m.changed = make(chan struct{})
			m.mu.Unlock()
			return true
		}
		m.w.trace.add(m.name, "connect: %v", err)
		select {
		case <-stop:
			return false
		default:
			m.w.sleep(m.party, 100*time.Millisecond)
		}
	}
}

func (m *member) hooks() session.Trace {
	t := session.Trace{
		State:       m.stateChanged,
		Hold:        m.w.checks.hold,
		Traceparent: func(context.Context) string { return "" },
	}
	if m.w.kind.limited != nil {
		t.Request = m.asked
	}
	if m.w.kind.batched {
		t.Request = m.w.joined.Hooks().Request
	}
	if m.w.kind.hostile {
		t = hostileTo(t)
	}
	return t
}

// asked is the trace hook for requests.
func (m *member) asked(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
	return ctx, func(err error) {
		if k, ok := ctx.Value(workerKey{}).(*worker); ok && err == nil && r.Op == "getData" {
			m.w.limits.read(k, r.Path)
		}
	}
}

func (m *member) close() {
	m.mu.Lock()
	mgr := m.manager
	m.manager = nil
	m.closing = time.Now()
	m.mu.Unlock()
	if mgr == nil {
		return
	}
	m.w.trace.add(m.name, "Close")
	err := mgr.Close()
	m.w.trace.add(m.name, "Close: %v", err != nil)
	if took := time.Since(m.closing); took > 6*time.Second {
		m.w.checks.fail("%s: Close took %v", m.name, took)
	}
}

// keepFor has the workers keep their locks for a while, unless they are lost.
func (m *member) keepFor(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep = time.Now().Add(d)
}

func (m *member) keeps() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Before(m.keep)
}

// leaves reports whether a manager is closed, or about to be: calls end with the session, a
// moment before State says so.
func (m *member) leaves(mgr *session.Manager) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.manager != mgr
}

// stateChanged is the trace hook.
func (m *member) stateChanged(c session.Change) {
	m.w.trace.add(m.name, "state %v (session %x)", c.To, c.Session&0xffff)
	if c.To == session.Lost && m.w.mayNotBeLost(m) {
		m.w.checks.fail("%s: a session of %v is lost because all is slow: %v", m.name, m.timeout, kindOfError(c.Err))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.session != c.Session {
		m.session, m.since = c.Session, time.Now()
	}
	m.up = c.To == session.Connected
}

// sessionNow returns the id of the live session, or 0.
func (m *member) sessionNow() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.session
}

// sessionSince is sessionNow, with the time from which on that has been so.
func (m *member) sessionSince() (int64, time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.session, m.since
}

// current waits for an open manager.
func (m *member) current(ctx context.Context) (*session.Manager, error) {
	for {
		m.mu.Lock()
		mgr, changed := m.manager, m.changed
		m.mu.Unlock()
		if mgr != nil {
			return mgr, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lock returns a lock at a path in some mode: one that workers of this manager share, or
// one of the caller's own.
func (m *member) lock(mgr *session.Manager, path, mode string, share bool) (any, error) {
	if !share {
		all, err := m.w.kind.open(mgr, path)
		return all[mode], err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locks[path] == nil || m.manager != mgr {
		all, err := m.w.kind.open(mgr, path)
		if err != nil || m.manager != mgr {
			return all[mode], err
		}
		m.locks[path] = all
	}
	return m.locks[path][mode], nil
}
