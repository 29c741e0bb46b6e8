package session_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// sent returns the requests about nodes that a server has got, as words such as "getData /p/d".
func sent(requests []zktest.Request) (all []string) {
	for _, r := range requests {
		if r.Path != "" {
			all = append(all, fmt.Sprint(r.Op, " ", r.Path))
		}
	}
	return all
}

// makes makes nodes with data, and returns their paths.
func (e *env) makes(names ...string) (paths []string) {
	e.t.Helper()
	for _, name := range names {
		p, err := e.other.Create(patient(e.t), e.d+"/"+name, []byte("data of "+name), session.Persistent)
		must(e.t, err)
		paths = append(paths, p)
	}
	return paths
}

// The requests leave in order and in one flight, and the watches have what the nodes were. Nothing is sent for a watch that
// is there.
func TestWatchNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hooks atomic.Int64
		e := newEnv(t, session.WithTrace(session.Trace{Request: func(ctx context.Context, i session.RequestInfo) (context.Context, func(error)) {
			if i.Op == "getData" {
				hooks.Add(1)
			}
			return ctx, nil
		}}))
		paths := append(e.makes("b", "a", "c"), e.d)
		e.ResetRequests()
		held := e.HoldReply(zktest.On(zktest.OpGetData, paths[0]))
		var got []*session.Watch
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			got, err = e.s.WatchNodes(t.Context(), paths...)
		}()
		synctest.Wait()
		if isClosed(done) {
			t.Error("it returns before the first answer")
		}
		var want []string
		for _, p := range paths {
			want = append(want, fmt.Sprint(zktest.OpGetData, " ", p))
		}
		if all := sent(e.Requests()); !slices.Equal(all, want) {
			t.Errorf("%q, want %q", all, want)
		}
		held.Release()
		<-done
		must(t, err)
		for i, w := range got {
			want := "data of " + paths[i][len(e.d)+min(1, len(paths[i])-len(e.d)):]
			if paths[i] == e.d {
				want = ""
			}
			if data, stat := w.Data(); string(data) != want || stat == nil || w.Event() != session.WatchPending {
				t.Errorf("%s: data %q, stat %v, event %v", paths[i], data, stat, w.Event())
			}
		}
		again, err := e.s.WatchNodes(t.Context(), paths...)
		must(t, err)
		if !slices.Equal(again, got) || hooks.Load() != 4 {
			t.Errorf("%v after %v; %d requests", again, got, hooks.Load())
		}
		must(t, e.DeleteNode(paths[2]))
		wantEvent(t, got[2], session.WatchDeleted)
		if got[0].Event() != session.WatchPending {
			t.Error("a node that stands is gone")
		}
	})
}

// crowds fills the window of the connection with calls about the directory above that of the test, and makes more of them wait.
func (e *env) crowds(srv *zktest.Server) (release func()) {
	e.t.Helper()
	held := srv.HoldReply(zktest.On(zktest.OpExists, "/p/0"))
	for i := range 140 {
		go func() { _, _ = e.s.Exists(e.t.Context(), fmt.Sprint("/p/", i)) }()
		synctest.Wait()
	}
	srv.ResetRequests()
	return held.Release
}

// The watch of a node tells that the node is not there, or that its connection broke. A refusal of the servers is an error.
func TestWatchNodesFails(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		ctx, paths := patient(t), e.makes("a", "b")
		got, err := e.s.WatchNodes(ctx, paths[0], e.d+"/none")
		must(t, err)
		if data, stat := got[1].Data(); got[1].Event() != session.WatchDeleted || data != nil || stat != nil {
			t.Errorf("no node: event %v, data %q, stat %v", got[1].Event(), data, stat)
		}
		must(t, e.other.Delete(ctx, paths[0], -1))
		wantEvent(t, got[0], session.WatchDeleted)

		for _, bad := range [][]string{{"a", paths[1]}, {paths[1], ""}} {
			wantErr(t, "a bad path", expect.Err(e.s.WatchNodes(ctx, bad...)), session.ErrInvalid)
		}
		got, err = e.s.WatchNodes(ctx)
		if must(t, err); len(got) > 0 {
			t.Errorf("%v without a path", got)
		}

		paths = append(paths[1:], e.makes("c")...)
		cut := e.CutBefore(zktest.On(zktest.OpGetData, paths[1]))
		got, err = e.s.WatchNodes(ctx, paths...)
		must(t, err)
		expect.Receive(t, "the cut", cut.Hit())
		if data, stat := got[1].Data(); got[1].Event() != session.WatchBroken || data != nil || stat != nil {
			t.Errorf("a broken connection: event %v, data %q, stat %v", got[1].Event(), data, stat)
		}
		wantEvent(t, got[0], session.WatchBroken)

		ended, cancel := context.WithCancel(ctx)
		held := e.HoldReply(zktest.On(zktest.OpGetData, paths[1]))
		result := expect.Go(func() error { return expect.Err(e.s.WatchNodes(ended, paths...)) })
		expect.Receive(t, "the request", held.Hit())
		cancel()
		wantErr(t, "a context that ends", expect.Receive(t, "WatchNodes", result), context.Canceled)
		result = expect.Go(func() error { return expect.Err(e.s.WatchNodes(ctx, paths...)) })
		synctest.Wait()
		must(t, e.Expire(ctx, e.s.ID()))
		held.Release()
		expect.Receive(t, "the end of the session", e.s.Done())
		if err := expect.Receive(t, "WatchNodes", result); err != nil { // the answer can be faster on the shared server
			wantErr(t, "a lost session", err, session.ErrLost)
		}
		wantErr(t, "a lost session", expect.Err(e.s.WatchNodes(ctx, paths...)), session.ErrLost)
	})
}

// A node that may not be read is an error, which names it.
func TestWatchNodesRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		secret := e.makes("secret")[0]
		must(t, expect.Err(rawClient(t, e.Dialer()).SetACL(secret, zk.WorldACL(zk.PermDelete), -1)))
		_, err := e.s.WatchNodes(t.Context(), e.d, secret)
		wantErr(t, "WatchNodes", err, zk.ErrNoAuth)
		if want := "getData " + secret + ": "; !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v", err)
		}
		_, err = e.s.List(t.Context(), secret, session.ListOptions{Data: true, Children: true})
		wantErr(t, "List", err, zk.ErrNoAuth)
	})
}

// A context that ends in the moment in which the connection breaks is what WatchNodes reports: not the break, which the
// next connection mends.
func TestWatchNodesCancelledAtACut(t *testing.T) {
	for range 20 { // of two things that have ended, either may be seen first
		type cancelKey struct{}
		inBubble(t, func(t *testing.T, e *env) {
			paths := e.makes("a", "b")
			ctx, cancel := context.WithCancel(patient(t))
			defer cancel()
			e.CutBefore(zktest.On(zktest.OpGetData, paths[1]))
			_, err := e.s.WatchNodes(context.WithValue(ctx, cancelKey{}, cancel), paths...)
			wantErr(t, "WatchNodes", err, context.Canceled)
		}, session.WithTrace(session.Trace{Request: func(ctx context.Context, _ session.RequestInfo) (context.Context, func(error)) {
			return ctx, func(err error) {
				if cancel, ok := ctx.Value(cancelKey{}).(context.CancelFunc); ok && err != nil {
					cancel()
				}
			}
		}}))
	}
}

// Two callers of Children get one answer of the server. Each may change what it gets.
func TestChildrenAreTheCallers(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		e.makes("a", "b")
		release := e.crowds(e.Server)
		all := make(chan []string, 3)
		list := func() {
			names, stat, err := e.s.Children(t.Context(), e.d)
			if err != nil || stat.NumChildren != 2 {
				t.Errorf("%v, %v", stat, err)
			}
			slices.Sort(names)
			all <- slices.Clone(names)
			clear(names)
			stat.NumChildren = 0
		}
		for range 3 {
			go list()
			synctest.Wait()
		}
		release()
		for range 3 {
			if names := <-all; !slices.Equal(names, []string{"a", "b"}) {
				t.Errorf("names %q", names)
			}
		}
		expect.Requests(t, "Children", e.Server, zktest.On(zktest.OpGetChildren2, e.d), 1)
	})
}
