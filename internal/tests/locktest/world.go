package locktest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/session"
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
	*bubble.World
	subject Subject
	path    string // of the lock
	dial    func(...session.Option) *session.Manager
}

// inWorld runs f in a bubble with a world of its own.
func inWorld(t *testing.T, s Subject, f func(*world)) {
	t.Helper()
	bubble.Run(t, func(b *bubble.World) {
		f(&world{b, s, path, func(opts ...session.Option) *session.Manager {
			return b.Connect(append(opts, session.WithTimeout(timeout))...)
		}})
	})
}

// inBubble makes a case of a function that needs one world.
func inBubble(f func(*world)) func(*testing.T, Subject) {
	return func(t *testing.T, s Subject) { inWorld(t, s, f) }
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
		if w.Server != nil {
			synctest.Wait()
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
	w.Must(err)
	return &process{w, m, l, nil}
}

// rival returns a process whose lock excludes all others.
func (w *world) rival() *process {
	w.Helper()
	m := w.dial()
	l, err := w.subject.Rival(m, w.path)
	w.Must(err)
	return &process{w, m, l, nil}
}

// session returns the id of a process's session.
func (p *process) session() int64 {
	p.Helper()
	return p.Session(p.m).ID()
}

// nodes returns the paths of all nodes of contenders, in the order in which they came.
func (w *world) nodes() (paths []string) {
	w.Helper()
	for _, node := range w.Ephemerals() {
		if strings.HasPrefix(node, w.path) {
			paths = append(paths, node)
		}
	}
	return paths
}

// wantNodes wants so many nodes at this moment.
func (w *world) wantNodes(when string, n int) {
	w.Helper()
	if nodes := w.nodes(); len(nodes) != n {
		w.Errorf("%s: nodes %q, want %d", when, nodes, n)
	}
}

// gone waits until the server has no more than n nodes.
func (w *world) gone(what string, n int) {
	w.Helper()
	for end := time.Now().Add(settling); len(w.nodes()) > n; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("%s: nodes %q are left, want %d", what, w.nodes(), n)
		}
	}
}

// usable takes and releases the lock by each process, one after the other, and wants nothing left.
func (w *world) usable(all ...*process) {
	w.Helper()
	for _, p := range all {
		p.holds()()
	}
	w.gone("after the next release", 0)
}
