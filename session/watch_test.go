package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

func wantEvent(t testing.TB, w *session.Watch, want session.WatchEvent) {
	t.Helper()
	expect.Receive(t, "the event", w.Done())
	if got := w.Event(); got != want {
		t.Fatalf("event %v, want %v", got, want)
	}
}

// watch watches the data of a node.
func (e *env) watch(path string) *session.Watch {
	e.t.Helper()
	_, _, w, err := e.s.Watch(e.t.Context(), path)
	must(e.t, err)
	return w
}

// watchChildren watches the children of a node, which may be missing.
func (e *env) watchChildren(path string) *session.Watch {
	e.t.Helper()
	_, _, w, err := e.s.WatchChildren(e.t.Context(), path)
	must(e.t, err)
	if event := w.Event(); event != session.WatchPending {
		e.t.Fatalf("event %v of a new watch", event)
	}
	return w
}

// wantWatches checks how many watches the server has.
func (e *env) wantWatches(want string) {
	e.t.Helper()
	must(e.t, e.s.Sync(e.t.Context(), "/"))
	if got := watched(e.t, e.Server); got != want {
		e.t.Errorf("%s watches on the server, want %s", got, want)
	}
}

// All waiters at a node share one watch and one request. Each has the data and the stat for itself, and can change them.
// What it gets has no room behind it: if it appends to that, it does not change what others have.
func TestWatchIsShared(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		ctx, node := t.Context(), e.makes("n")[0]
		e.ResetRequests()
		first := e.watch(node)
		for range 50 {
			data, stat, w, err := e.s.Watch(ctx, node)
			must(t, err)
			if string(data) != "data of n" || cap(data) != len(data) || stat.EphemeralOwner != 0 || w != first || w.Event() != session.WatchPending {
				t.Fatalf("data %q, stat %+v, event %v", data, stat, w.Event())
			}
			data[0], stat.EphemeralOwner = 'y', 1
		}
		expect.Requests(t, "watches", e.Server, zktest.On(zktest.OpGetData, node), 1)
		e.wantWatches("1")
		must(t, e.s.Delete(ctx, node, -1))
		wantEvent(t, first, session.WatchDeleted)
		_, _, w, err := e.s.Watch(ctx, node)
		wantErr(t, "watch of a node that is gone", err, zk.ErrNoNode)
		if w != nil {
			t.Error("a watch of a node that is gone")
		}

		absent := e.watchChildren(e.d + "/none")
		names, stat, w, err := e.s.WatchChildren(ctx, e.d+"/none")
		must(t, err)
		if names != nil || stat != nil || w != absent || e.Count(zktest.On(zktest.OpExists, e.d+"/none")) != 1 {
			t.Errorf("%v, %v of a node that does not exist, the same watch %v", names, stat, w == absent)
		}
		e.makes("child", "none")
		wantEvent(t, absent, session.WatchChanged)
		e.ResetRequests()
		shared := e.watchChildren(e.d)
		for range 50 {
			names, stat, w, err := e.s.WatchChildren(ctx, e.d)
			must(t, err)
			if len(names) != 2 || names[0] == "spoilt" || stat.NumChildren != 2 || w != shared {
				t.Fatalf("%q, %+v, the same watch %v", names, stat, w == shared)
			}
			names[0], stat.NumChildren = "spoilt", 7
		}
		expect.Requests(t, "watches on children", e.Server, zktest.On(zktest.OpGetChildren2, e.d), 1)
		e.wantWatches("1")
		_, _, _, err = e.s.WatchChildren(ctx, "no/path")
		wantErr(t, "a bad path", err, session.ErrInvalid)
	})
}

// A watch on the data of a node ends when they change and with the node. One on its children ends when a child comes or goes,
// with the node, and when the node is created. All end with the connection, and with the session.
func TestWatchEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		ctx, d := t.Context(), e.d+"/parent"
		children := e.watchChildren(d)
		e.makes("parent")
		wantEvent(t, children, session.WatchChanged)

		children = e.watchChildren(d)
		data := e.watch(d)
		must(t, expect.Err(e.other.Set(ctx, d, []byte("newer"), -1)))
		wantEvent(t, data, session.WatchChanged)
		if event := children.Event(); event != session.WatchPending {
			t.Fatalf("event %v after a change of the data", event)
		}
		e.makes("parent/child")
		wantEvent(t, children, session.WatchChanged)
		children = e.watchChildren(d)
		must(t, e.other.Delete(ctx, d+"/child", -1))
		wantEvent(t, children, session.WatchChanged)

		children, data = e.watchChildren(d), e.watch(d)
		absent := e.watchChildren(e.d + "/none")
		e.Disconnect()
		for _, w := range []*session.Watch{children, data, absent} {
			wantEvent(t, w, session.WatchBroken)
		}
		children, data = e.watchChildren(d), e.watch(d)
		must(t, e.other.Delete(ctx, d, -1))
		wantEvent(t, children, session.WatchDeleted)
		wantEvent(t, data, session.WatchDeleted)
		e.wantWatches("0")

		children, data, absent = e.watchChildren(e.d), e.watch(e.d), e.watchChildren(d)
		must(t, e.Expire(ctx, e.s.ID()))
		for _, w := range []*session.Watch{children, data, absent} {
			wantEvent(t, w, session.WatchBroken)
		}
		_, _, _, err := e.s.WatchChildren(ctx, d)
		wantErr(t, "WatchChildren", err, session.ErrLost)
	})
}

// watched returns how many watches a server has.
func watched(t *testing.T, srv *zktest.Server) string {
	t.Helper()
	metrics, err := srv.Metrics()
	must(t, err)
	return metrics["zk_watch_count"]
}

// A watch is removed from the server when the last of the calls that share it forgets it. Others at the path stay.
func TestForget(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		data := func() *session.Watch { return e.watch(e.d) }
		children := func() *session.Watch { return e.watchChildren(e.d) }
		absent := func() *session.Watch { return e.watchChildren(e.d + "/none") }
		listed := func() *session.Watch {
			l, err := e.s.List(t.Context(), e.d, session.ListOptions{Children: true})
			must(t, err)
			return l.Children
		}
		for what, c := range map[string]struct {
			first, second func() *session.Watch
			shared        bool
		}{
			"data": {data, data, true}, "children": {children, children, true}, "absence": {absent, absent, true},
			"listed": {listed, children, false}, "listed twice": {listed, listed, false},
		} {
			one, two := c.first(), c.second()
			if (one == two) != c.shared {
				t.Fatalf("%s: shared: %v", what, one == two)
			}
			one.Forget()
			if e.wantWatches("1"); two.Event() != session.WatchPending {
				t.Errorf("%s: event %v while one call needs it", what, two.Event())
			}
			two.Forget()
			if e.wantWatches("0"); one.Event() != session.WatchBroken || two.Event() != session.WatchBroken {
				t.Errorf("%s: events %v and %v", what, one.Event(), two.Event())
			}
		}
	})
}

// A call that watches while another forgets misses no event.
func TestForgetBesideOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		end, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for end.Err() == nil {
					_, _, w, err := e.s.Watch(t.Context(), e.d)
					must(t, err)
					w.Forget()
				}
			})
		}
		for range 200 {
			_, _, w, err := e.s.Watch(t.Context(), e.d)
			must(t, err)
			must(t, expect.Err(e.s.Set(t.Context(), e.d, nil, -1)))
			wantEvent(t, w, session.WatchChanged)
		}
		stop()
		wg.Wait()
	})
}

// Calls that are cancelled while they set watches leave none.
func TestCancelledWatchIsForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		paths := e.makes("a", "b")
		for what, call := range map[string]func(context.Context) error{
			"WatchNodes": func(ctx context.Context) error { _, err := e.s.WatchNodes(ctx, paths...); return err },
			"Watch":      func(ctx context.Context) error { _, _, _, err := e.s.Watch(ctx, paths[1]); return err },
			"List": func(ctx context.Context) error {
				_, err := e.s.List(ctx, paths[1], session.ListOptions{Data: true, Watch: true, Children: true})
				return err
			},
		} {
			held := e.HoldReply(zktest.On(zktest.OpGetData, paths[1]))
			ctx, cancel := context.WithCancel(t.Context())
			ended := expect.Go(func() error { return call(ctx) })
			<-held.Hit()
			cancel()
			wantErr(t, what, <-ended, context.Canceled)
			held.Release()
			must(t, e.s.Sync(t.Context(), "/"))
			if n := watched(t, e.Server); n != "0" {
				t.Errorf("%s: %s watches", what, n)
			}
		}
	})
}

// A node that is created while a call learns that it is absent tells so, and leaves no watch on its data.
func TestWatchChildrenOfNewNode(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		held := e.HoldRequest(zktest.On(zktest.OpExists, e.d+"/new"))
		got := make(chan *session.Watch, 1)
		go func() {
			_, _, w, err := e.s.WatchChildren(t.Context(), e.d+"/new")
			if err != nil {
				t.Error(err)
			}
			got <- w
		}()
		<-held.Hit()
		e.makes("new")
		held.Release()
		w := <-got
		must(t, e.s.Sync(t.Context(), "/"))
		if n := watched(t, e.Server); n != "0" || w.Event() != session.WatchChanged {
			t.Errorf("%s watches, event %v", n, w.Event())
		}
	})
}

// A call that shares a watch which another is about to set waits for that: until its context ends, or its session. If the
// other's connection has ended meanwhile, it asks again, since its own is fine. A call that ends does not look at the answer,
// which can come at the same time: the race detector sees that.
func TestWatchThatAnotherSets(t *testing.T) {
	for name, call := range map[string]func(context.Context, *session.Session, string) error{
		"Watch": func(ctx context.Context, s *session.Session, d string) error {
			_, _, _, err := s.Watch(ctx, d)
			return err
		},
		"List": func(ctx context.Context, s *session.Session, d string) error {
			l, err := s.List(ctx, d, session.ListOptions{Data: true, Watch: true})
			if err == nil && (l.DataStat == nil || l.Directory.Event() != session.WatchPending) {
				return fmt.Errorf("%+v", l)
			}
			return err
		},
	} {
		for what, c := range map[string]struct {
			ends          func(e *env, cancel context.CancelFunc)
			first, second error
		}{
			"it goes on":            {nil, nil, nil},
			"the call is cancelled": {func(_ *env, cancel context.CancelFunc) { cancel() }, nil, context.Canceled},
			"the manager is closed": {func(e *env, _ context.CancelFunc) { must(e.t, e.m.Close()) },
				session.ErrClosed, session.ErrClosed},
			"its connection has ended": {nil, nil, nil},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					before, sets := newPause("sync"), newPause("getData")
					e := newEnv(t, before.hooks(), sets.hooks())
					first := expect.Go(func() error {
						return expect.Err(e.s.List(before.mark(sets.mark(t.Context())), e.d, session.ListOptions{Sync: true, Data: true, Watch: true}))
					})
					synctest.Wait()
					if what == "its connection has ended" {
						e.Disconnect()
						must(t, e.s.Sync(t.Context(), "/")) // there is another connection
					}
					close(before.goOn)
					synctest.Wait() // it has made the watch, and has not sent the request
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					second := expect.Go(func() error { return call(ctx, e.s, e.d) })
					if synctest.Wait(); len(second) > 0 && what == "it goes on" {
						t.Fatalf("it returns %v before the data are there", <-second)
					}
					if c.ends != nil {
						began := time.Now()
						if c.ends(e, cancel); time.Since(began) > 0 {
							t.Errorf("it has waited %v for the other caller", time.Since(began))
						}
					}
					close(sets.goOn)
					for what, err := range map[string][2]error{"the first call": {<-first, c.first}, "the second": {<-second, c.second}} {
						if !errors.Is(err[0], err[1]) {
							t.Errorf("%s: %v, want %v", what, err[0], err[1])
						}
					}
				})
			})
		}
	}
}
