package core

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/clock"
)

// What a manager does for the lock packages.

// Chroot returns the path of the connect string below which all nodes lie, or "/" if the
// connect string has none.
func (m *Manager) Chroot() string { return m.Made().cfg.outward("/") }

// Logger returns the logger of session.WithLogger, or the default.
func (m *Manager) Logger() *slog.Logger { return m.cfg.Log }

// Retry returns the function of session.WithRetry, which never returns nil. It is for loops
// that are made of requests.
func (m *Manager) Retry() func() backoff.BackOff { return m.cfg.Retry }

// MaxNodes returns the number of session.WithMaxNodes, or the default.
func (m *Manager) MaxNodes() int { return m.cfg.MaxNodes }

// Hooks returns the hooks of session.WithTrace, and those of AddTrace.
func (m *Manager) Hooks() *hooks.Trace { return m.Made().cfg.trace.Load() }

// AddTrace adds hooks to those of session.WithTrace. They are not told how a thing ends that had begun before. The first
// call of a State hook tells the present state, as that of Subscribe does.
func (m *Manager) AddTrace(t hooks.Trace) {
	if state := m.cfg.trace.Add(t); state != nil {
		m.Subscribe(state)
	}
}

// CallLate has hooks called, which are those for a lock that was lost. It returns at once. One goroutine of the manager
// makes all such calls, in the order in which they were asked for. If a hook blocks, a bounded number of calls waits, and
// further ones are dropped, which the log tells.
func (m *Manager) CallLate(hooks func()) { m.cfg.trace.Late(hooks) }

// SetWindow bounds the calls in flight of each connection by a number, or not at all if it is negative. 0 means
// what users have: the number follows the times of the answers. With 1, creates and deletes that come while a
// request is under way leave in one transaction. It is for tests.
func (m *Manager) SetWindow(calls int) { m.cfg.window.Store(int32(calls)) }

// Status is that of package session.
type Status struct {
	State   hooks.State
	Session *Session
	Timeout time.Duration
	Server  string
	Failure error
}

// Status is that of session.Manager.
func (m *Manager) Status() Status {
	state, s := m.present()
	out := Status{State: state, Timeout: m.cfg.Timeout}
	if s != nil && state != hooks.Closed {
		out.Server = s.server().Name()
		if s.Err() == nil {
			out.Session = s
		}
	}
	switch state {
	case hooks.Connected:
		out.Failure = m.Silence()
	case hooks.Connecting, hooks.Suspended, hooks.Lost:
		out.Failure = m.Failure()
	}
	return out
}

// Failure returns why there is no connection, as far as that is known, and otherwise nil. It does
// not wait.
func (m *Manager) Failure() error {
	m.mu.Lock()
	refused := m.refused
	m.mu.Unlock()
	return cmp.Or(refused, m.dialer.LastFailure())
}

// Silence returns an error that says from which server, and for how long, no answer has come to a request in flight. It
// returns nil for a silence of less than a second, which a slow server can cause. It does not wait.
func (m *Manager) Silence() error {
	_, s := m.present()
	if s == nil {
		return nil
	}
	if noBytes, _ := s.present().Silence(clock.Now()); noBytes >= notableSilence {
		return fmt.Errorf("no answer from %v for %v", s.server(), noBytes.Round(100*time.Millisecond))
	}
	return nil
}

// notableSilence is how long a silence is that the error of a wait mentions.
const notableSilence = time.Second

// FirstWarning reports whether it is called with this path and transaction (zxid) for the first
// time, so that a warning about a node is logged once. It forgets old nodes when there are many.
func (m *Manager) FirstWarning(path string, zxid int64) bool {
	m.warned.mu.Lock()
	defer m.warned.mu.Unlock()
	if m.warned.nodes[path] == zxid {
		return false
	}
	if m.warned.nodes == nil || len(m.warned.nodes) >= maxWarned {
		m.warned.nodes = make(map[string]int64)
	}
	m.warned.nodes[path] = zxid
	return true
}

// warned has the nodes that a warning was logged about.
type warned struct {
	mu    sync.Mutex
	nodes map[string]int64 // the transactions that made them, by path
}

// maxWarned bounds the memory for nodes that a warning was logged about.
const maxWarned = 1000

// FullName is that of session.Manager.
func (m *Manager) FullName(path string) string {
	m.Made()
	if m.cfg.Name != "" {
		return m.cfg.Name + m.cfg.outward(path)
	}
	var servers []string
	for _, s := range m.cfg.servers {
		servers = append(servers, strings.ToLower(s.String()))
	}
	slices.Sort(servers)
	return strings.Join(slices.Compact(servers), ",") + m.cfg.outward(path)
}
