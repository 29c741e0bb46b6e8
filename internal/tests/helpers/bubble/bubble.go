// Package bubble has the world of a test of locks in virtual time: a server of package zktest, and the processes that
// use it. No time passes but while the test sleeps or waits.
package bubble

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Timeout is that of the sessions.
const Timeout = 10 * time.Second

// Longest bounds a test, in virtual time. Otherwise a call that waits for ever would pass its time with heartbeats.
const Longest = time.Hour

// A World is a server in a bubble, and the test.
type World struct {
	*testing.T
	*zktest.Server
	ctx   context.Context
	admin *session.Session // of another client; nil until it is needed
}

// Run runs f in a bubble of [synctest.Test], with a server of its own.
func Run(t *testing.T, f func(w *World), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := New(t)
		w.Server = zktest.Start(t, append([]zktest.Option{zktest.ContainerCheck(24 * time.Hour)}, opts...)...)
		f(w)
	})
}

// New returns a world without a server, for a test in real time.
func New(t *testing.T) *World {
	ctx, cancel := context.WithTimeout(t.Context(), Longest)
	t.Cleanup(cancel)
	return &World{T: t, ctx: ctx}
}

// Context returns the context of the test, which ends after Longest.
func (w *World) Context() context.Context { return w.ctx }

// Connect returns a manager. For locks it is another process.
func (w *World) Connect(opts ...session.Option) *session.Manager {
	w.T.Helper()
	m, err := session.Connect(w.ctx, w.Hosts(), append([]session.Option{
		session.WithDialer(w.Dialer()), session.WithTimeout(Timeout), session.WithTickTime(2 * time.Second),
		session.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	w.Must(err)
	w.T.Cleanup(func() { _ = m.Close() })
	return m
}

// Must ends the test if there is an error.
func (w *World) Must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// Want reports an error that does not match all of the targets. A nil target wants none.
func (w *World) Want(what string, err error, targets ...error) {
	w.T.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			w.T.Errorf("%s: error %v, want %v", what, err, target)
		}
	}
}

// Pass lets time go by, until nothing more can happen.
func (w *World) Pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Session returns the session of a manager.
func (w *World) Session(m *session.Manager) *session.Session {
	w.T.Helper()
	s, err := m.Session(w.ctx)
	w.Must(err)
	return s
}

// Lose ends the session of a manager on the servers, and returns when the manager knows that.
func (w *World) Lose(m *session.Manager) {
	w.T.Helper()
	w.Must(w.Expire(w.ctx, w.Session(m).ID()))
	w.Pass(time.Second)
}

// Cut has a server refuse all connections, and breaks those that there are. Heal ends it.
func (w *World) Cut() {
	w.Refuse(true)
	w.Disconnect()
	synctest.Wait()
}

// Admin returns the session of a client without locks.
func (w *World) Admin() *session.Session {
	w.T.Helper()
	if w.admin == nil {
		w.admin = w.Session(w.Connect())
	}
	return w.admin
}

// Make makes a node that stays, with the directories above it. Everybody has all permissions, or these.
func (w *World) Make(node, data string, perms ...int32) {
	w.T.Helper()
	if parent := path.Dir(node); parent != "/" {
		if stat, err := w.Admin().Exists(w.ctx, parent); err != nil || stat == nil {
			w.Make(parent, "")
		}
	}
	acl := zk.WorldACL(append(perms, zk.PermAll)[0])
	_, err := w.Admin().Multi(w.ctx, &zk.CreateRequest{Path: node, Data: []byte(data), Acl: acl})
	w.Must(err)
}

// Forge makes the node of a contender as another library does, and returns its path. The servers number it, unless the
// name ends with a number.
func (w *World) Forge(dir, name string) string {
	w.T.Helper()
	last := name[len(name)-1]
	node, err := w.Admin().Enter(w.ctx, session.NewNode{Dir: dir, Name: name, Fixed: last >= '0' && last <= '9'})
	w.Must(err)
	return node.Path
}

// Write sets the data of a node, as another client does.
func (w *World) Write(node, data string) {
	w.T.Helper()
	_, err := w.Admin().Set(w.ctx, node, []byte(data), -1)
	w.Must(err)
	synctest.Wait()
}

// Data returns the data of a node.
func (w *World) Data(node string) string {
	w.T.Helper()
	data, _, err := w.Admin().Get(w.ctx, node)
	w.Must(err)
	return string(data)
}

// Ephemerals returns the paths of all contenders' nodes, in the order in which they came. It sends nothing.
func (w *World) Ephemerals() (nodes []string) {
	w.T.Helper()
	text, err := w.Word("dump")
	w.Must(err)
	_, ephemerals, _ := strings.Cut(text, "Sessions with Ephemerals")
	for line := range strings.Lines(ephemerals) {
		if strings.HasPrefix(line, "\t/") {
			nodes = append(nodes, strings.TrimSpace(line))
		}
	}
	number := func(node string) string { return node[max(0, len(node)-10):] }
	slices.SortFunc(nodes, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	return nodes
}

// Nodes returns those in a directory, when nothing more can happen but by time.
func (w *World) Nodes(dir string) []string {
	w.T.Helper()
	synctest.Wait()
	return slices.DeleteFunc(w.Ephemerals(), func(node string) bool { return path.Dir(node) != dir })
}

// WantNodes wants so many contenders' nodes in a directory.
func (w *World) WantNodes(when, dir string, n int) {
	w.T.Helper()
	if nodes := w.Nodes(dir); len(nodes) != n {
		w.T.Errorf("%s: nodes %q in %s, want %d", when, nodes, dir, n)
	}
}

// Watches returns how many watches the server has, when nothing more can happen but by time.
func (w *World) Watches() int {
	w.T.Helper()
	synctest.Wait()
	metrics, err := w.Metrics()
	w.Must(err)
	n, err := strconv.Atoi(metrics["zk_watch_count"])
	w.Must(err)
	return n
}

// Remove deletes a node by hand.
func (w *World) Remove(node string) {
	w.T.Helper()
	w.Must(w.DeleteNode(node))
	synctest.Wait()
}

// A Call runs in a goroutine of its own.
type Call struct {
	w    *World
	done chan struct{}
	err  error
}

// Go calls f, and returns when nothing more can happen but by time.
func (w *World) Go(f func() error) *Call {
	c := &Call{w: w, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = f()
	}()
	synctest.Wait()
	return c
}

// Waits fails the test if the call has returned.
func (c *Call) Waits(why string) {
	c.w.T.Helper()
	synctest.Wait()
	select {
	case <-c.done:
		c.w.T.Fatalf("a call has returned (%v), though %s", c.err, why)
	default:
	}
}

// Err waits for the end of the call, and returns its error.
func (c *Call) Err() error {
	c.w.T.Helper()
	Receive(c.w, "the end of a call", c.done)
	return c.err
}

// A Pending is a call in a goroutine of its own that returns something, such as a lease.
type Pending[T any] struct {
	*Call
	Cancel context.CancelFunc
	Got    T
}

// Begin calls f, and returns when nothing more can happen but by time.
func Begin[T any](w *World, f func(context.Context) (T, error)) *Pending[T] {
	ctx, cancel := context.WithCancel(w.ctx)
	p := &Pending[T]{Cancel: cancel}
	p.Call = w.Go(func() (err error) {
		p.Got, err = f(ctx)
		return err
	})
	return p
}

// Get waits for the end of the call, and returns what it has got.
func (p *Pending[T]) Get() T {
	p.w.T.Helper()
	p.w.Must(p.Err())
	return p.Got
}

// Gives wants the call to give up when its context ends.
func (p *Pending[T]) Gives() {
	p.w.T.Helper()
	p.Cancel()
	p.w.Want("a cancelled call", p.Err(), context.Canceled)
}

// Receive returns the next value of a channel.
func Receive[T any](w *World, what string, ch <-chan T) T {
	w.T.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(Longest):
		w.T.Fatalf("%s: nothing within %v", what, Longest)
		panic("unreachable")
	}
}

// Await waits until a channel is closed, or has a value.
func (w *World) Await(ch <-chan struct{}) {
	w.T.Helper()
	Receive(w, "an event", ch)
}

// Took returns how long f took.
func Took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// ReapContainers deletes the containers that are empty and have had a child.
func (w *World) ReapContainers() {
	for testserver.Switch(w.Server).ReapContainers() > 0 {
	}
}
