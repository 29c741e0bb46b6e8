package locktest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	// path is the lock of all cases. The first contender has to make the directories above it.
	path = "/locks/here/one"
	// timeout is that of the sessions. A case in which a server is silent is over before.
	timeout = 30 * time.Second
	// KeptFor is how long a subject may keep a place that nobody uses.
	KeptFor = 5 * time.Second
	// settling is how long deletes may take that go on in the background, in virtual time.
	settling = time.Minute
)

// A world is a server and the processes that use it, in a bubble of virtual time.
type world struct {
	*testing.T
	subject Subject
	server  *zktest.Server
	path    string // of the lock
	ctx     context.Context
	over    chan struct{} // closed when the case is, so that what a failure has left behind ends

	dial func(...session.Option) *session.Manager
	dump func() (string, error)
}

// longest bounds a case. In a bubble nobody else would: a case that waits for ever passes its time with heartbeats.
const longest = time.Hour

// begin returns a world without a server.
func begin(t *testing.T, s Subject, path string) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	w := &world{T: t, subject: s, path: path, ctx: ctx, over: make(chan struct{})}
	t.Cleanup(func() {
		cancel()
		close(w.over)
	})
	return w
}

// Context returns the context of all calls of a case.
func (w *world) Context() context.Context { return w.ctx }

// newWorld starts a server. It is called in a bubble.
func newWorld(t *testing.T, s Subject) *world {
	t.Helper()
	server := zktest.Start(t, zktest.ContainerCheck(24*time.Hour))
	w := begin(t, s, path)
	w.server = server
	w.dump = func() (string, error) { return server.Word("dump") }
	w.dial = func(opts ...session.Option) *session.Manager {
		m, err := session.Connect(w.Context(), server.Hosts(), append([]session.Option{
			session.WithDialer(server.Dialer()), session.WithTimeout(timeout), session.WithTickTime(2 * time.Second),
			session.WithLogger(slog.New(slog.DiscardHandler)),
		}, opts...)...)
		w.must("Connect", err)
		w.Cleanup(func() { _ = m.Close() })
		return m
	}
	return w
}

// inBubble makes a case of a function that needs one world.
func inBubble(f func(*world)) func(*testing.T, Subject) {
	return func(t *testing.T, s Subject) {
		synctest.Test(t, func(t *testing.T) { f(newWorld(t, s)) })
	}
}

// A process is a manager, and a lock of the subject.
type process struct {
	*world
	m     *session.Manager
	lock  Lock
	hooks *recorder // nil for a rival
}

// process returns a new one.
func (w *world) process() *process {
	w.Helper()
	var hooks recorder
	w.Cleanup(func() { // once the manager has closed
		if w.idle(); w.server != nil {
			hooks.balanced(w.T)
		}
	})
	p := w.object(w.dial(hooks.trace()))
	p.hooks = &hooks
	return p
}

// object returns another lock object of a manager.
func (w *world) object(m *session.Manager) *process {
	w.Helper()
	l, err := w.subject.New(m, w.path)
	w.must("New", err)
	return &process{w, m, l, nil}
}

// rival returns a process whose lock excludes all others.
func (w *world) rival() *process {
	w.Helper()
	m := w.dial()
	l, err := w.subject.Rival(m, w.path)
	w.must("New of the rival", err)
	return &process{w, m, l, nil}
}

// session returns the id of a process's session.
func (p *process) session() int64 {
	p.Helper()
	s, err := p.m.Session(p.Context())
	p.must("Session", err)
	return s.ID()
}

// must ends the test if there is an error.
func (w *world) must(what string, err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

// want reports an error that does not match the target. A nil target wants none.
func (w *world) want(what string, err, target error) {
	w.Helper()
	if !errors.Is(err, target) {
		w.Errorf("%s: error %v, want %v", what, err, target)
	}
}

// nodes returns the paths of all nodes of contenders, in the order in which they came.
func (w *world) nodes() (paths []string) {
	w.Helper()
	text, err := w.dump()
	w.must("dump", err)
	_, ephemerals, _ := strings.Cut(text, "Sessions with Ephemerals")
	for line := range strings.Lines(ephemerals) {
		if strings.HasPrefix(line, "\t"+w.path) {
			paths = append(paths, strings.TrimSpace(line))
		}
	}
	sequence := func(p string) string { return p[len(p)-10:] }
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(sequence(a), sequence(b)) })
	return paths
}

// watches returns how many watches the server has.
func (w *world) watches() int {
	w.Helper()
	metrics, err := w.server.Metrics()
	w.must("metrics", err)
	n, err := strconv.Atoi(metrics["zk_watch_count"])
	w.must("zk_watch_count", err)
	return n
}

// gone waits until the server has no more than n nodes. In real time it does not wait for places that are kept.
func (w *world) gone(what string, n int) {
	w.Helper()
	if w.server == nil && w.subject.KeepsPlace {
		return
	}
	for end := time.Now().Add(settling); len(w.nodes()) > n; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("%s: nodes %q are left, want %d", what, w.nodes(), n)
		}
	}
}

// write sets the data of a node, as another client does.
func (w *world) write(node, data string) {
	w.Helper()
	s, err := w.dial().Session(w.Context())
	w.must("Session", err)
	_, err = s.Set(w.Context(), node, []byte(data), -1)
	w.must("Set", err)
}

// usable takes and releases the lock by each process, one after the other, and wants nothing left.
func (w *world) usable(all ...*process) {
	w.Helper()
	for _, p := range all {
		p.holds()()
	}
	w.gone("after the next release", 0)
}
