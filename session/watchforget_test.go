package session_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// watched returns how many watches a server has.
func watched(t *testing.T, srv *zktest.Server) string {
	t.Helper()
	metrics, err := srv.Metrics()
	must(t, err)
	return metrics["zk_watch_count"]
}

// A watch is removed from the server when the last of the calls that share it forgets it. Others at the path stay.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, srv := virtualEntry(t)
		ctx, s := t.Context(), e.s
		data := func() *session.Watch {
			_, _, w, err := s.Watch(ctx, e.d)
			must(t, err)
			return w
		}
		children := func() *session.Watch {
			_, _, w, err := s.WatchChildren(ctx, e.d)
			must(t, err)
			return w
		}
		listed := func() *session.Watch {
			l, err := s.List(ctx, e.d, session.ListOptions{Children: true})
			must(t, err)
			return l.Children
		}
		absent := func() *session.Watch {
			_, _, w, err := s.WatchChildren(ctx, e.d+"/none")
			must(t, err)
			return w
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
			must(t, s.Sync(ctx, e.d)) // what was sent has arrived
			if n := watched(t, srv); n != "1" || two.Event() != session.WatchPending {
				t.Errorf("%s: %s watches, event %v, while one call needs it", what, n, two.Event())
			}
			two.Forget()
			must(t, s.Sync(ctx, e.d))
			if n := watched(t, srv); n != "0" || one.Event() != session.WatchBroken || two.Event() != session.WatchBroken {
				t.Errorf("%s: %s watches, events %v and %v", what, n, one.Event(), two.Event())
			}
		}
	})
}

// A call that watches while another forgets misses no event.
func TestForgetBesideOthers(t *testing.T) {
	_, _, s := behindProxy(t, testserver.Patience)
	d, ctx := dir(t, s), patient(t)
	end, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for end.Err() == nil {
				if _, _, w, err := s.Watch(ctx, d); err != nil {
					t.Error(err)
				} else {
					w.Forget()
				}
			}
		})
	}
	for range 200 {
		_, _, w, err := s.Watch(ctx, d)
		must(t, err)
		_, err = s.Set(ctx, d, nil, -1)
		must(t, err)
		wantEvent(t, w, session.WatchChanged)
	}
	stop()
	wg.Wait()
}

// Calls that are cancelled while they set watches leave none.
func TestCancelledWatchIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, srv := virtualEntry(t)
		paths := e.makes("a", "b")
		for what, call := range map[string]func(context.Context) error{
			"WatchNodes": func(ctx context.Context) error { _, err := e.s.WatchNodes(ctx, paths...); return err },
			"Watch":      func(ctx context.Context) error { _, _, _, err := e.s.Watch(ctx, paths[1]); return err },
			"List": func(ctx context.Context) error {
				_, err := e.s.List(ctx, paths[1], session.ListOptions{Data: true, Watch: true, Children: true})
				return err
			},
		} {
			held := srv.HoldReply(zktest.On(zktest.OpGetData, paths[1]))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- call(ctx) }()
			<-held.Hit()
			cancel()
			wantErr(t, what, <-ended, context.Canceled)
			held.Release()
			must(t, e.s.Sync(t.Context(), "/"))
			if n := watched(t, srv); n != "0" {
				t.Errorf("%s: %s watches", what, n)
			}
		}
	})
}

// A node that is created while a call learns that it is absent tells so, and leaves no watch on its data.
func TestWatchChildrenOfNewNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, srv := virtualEntry(t)
		held := srv.HoldRequest(zktest.On(zktest.OpExists, e.d+"/new"))
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
		if n := watched(t, srv); n != "0" || w.Event() != session.WatchChanged {
			t.Errorf("%s watches, event %v", n, w.Event())
		}
	})
}
