package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// traceKey is for a value that the hooks find in their contexts.
type traceKey struct{}

// The Request hook gets each try, with the path as the user knows it and the server, and its
// function is called at the end. That is also true of requests in the background, which have the
// values of the context on whose behalf they run.
func TestTraceRequests(t *testing.T) {
	type call struct {
		session.RequestInfo
		err  error
		done bool
		by   any
	}
	var mu sync.Mutex
	var calls []*call
	var retries []string
	var h history
	root := testserver.Path(t)
	p := testserver.Proxy(t)
	m := testserver.Connect(t, p.Addr()+root, session.WithTimeout(10*time.Second), session.WithTrace(session.Trace{
		State: h.add,
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			mu.Lock()
			defer mu.Unlock()
			c := &call{RequestInfo: r, by: ctx.Value(traceKey{})}
			calls = append(calls, c)
			return ctx, func(err error) {
				mu.Lock()
				defer mu.Unlock()
				c.err, c.done = err, true
			}
		},
		Retry: func(ctx context.Context, r session.RetryInfo) {
			mu.Lock()
			defer mu.Unlock()
			retries = append(retries, fmt.Sprint(r.Op, " ", r.Try, " by ", ctx.Value(traceKey{})))
			if !errors.Is(r.Cause, zk.ErrConnectionClosed) {
				t.Errorf("%s is tried again after %v", r.Op, r.Cause)
			}
		},
	}))
	s, ctx := testserver.Session(t, m), patient(t)
	must(t, makeDir(ctx, s, "/d"))
	ctx = context.WithValue(ctx, traceKey{}, "me")
	mu.Lock()
	calls = nil
	mu.Unlock()
	node, err := makeNode(ctx, s, "/d/n", nil)
	must(t, err)
	p.CutAfterCommit(zktest.On(zktest.OpGetChildren2, root))
	_, _, err = s.Children(ctx, "/d")
	must(t, err)
	wantErr(t, "multi", expect.Err(s.Multi(ctx, &zk.CheckVersionRequest{Path: "/d", Version: 7})), zk.ErrBadVersion)
	for range 2 { // the second shares the watch and sends nothing
		_, _, _, err = s.Watch(ctx, node)
		must(t, err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	p.CutAfterCommit(zktest.On(zktest.OpDelete, root))
	must(t, gone(s.Remove(over, node)))

	mu.Lock()
	defer mu.Unlock()
	var got []string
	for _, c := range calls {
		if !c.done || c.Server != p.Addr() || c.Peer != p.Addr() || c.Chroot != root || c.by != "me" {
			t.Errorf("%+v", c)
		}
		outcome := "ok"
		if c.err != nil {
			outcome = "failed"
		}
		got = append(got, strings.Join([]string{c.Op, c.Path, outcome}, " "))
	}
	want := []string{"create /d/n ok", "getChildren /d ok", "getChildren /d failed", "getChildren /d ok",
		"multi / failed", "getData /d/n ok",
		"delete /d/n failed", "delete /d/n failed"} // the second finds no node
	if !slices.Equal(got, want) {
		t.Errorf("requests\n%v, want\n%v", got, want)
	}
	if want := []string{"getChildren 1 by me", "delete 1 by me"}; !slices.Equal(retries, want) {
		t.Errorf("retries %v, want %v", retries, want)
	}
	h.wait(t, session.Connected, session.Suspended, session.Connected, session.Suspended, session.Connected)
}

func TestSubscribeIsNotHeldUpByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, block := zktest.Start(t), make(chan struct{})
		defer close(block)
		m, s := virtually(t, "h:1", srv.Dialer())
		defer m.Subscribe(func(session.Change) { <-block })()
		var h, cancelled history
		m.Subscribe(h.add)
		m.Subscribe(cancelled.add)()
		srv.Disconnect()
		must(t, s.Sync(t.Context(), "/"))
		h.wait(t, session.Connected, session.Suspended, session.Connected)
		if n := len(cancelled.states()); n > 1 {
			t.Errorf("%d changes after cancel", n-1)
		}
	})
}

// Status tells what the manager knows, before, during and after an outage, and when the servers are silent.
func TestStatus(t *testing.T) {
	const timeout = 20 * time.Second
	inBubble(t, func(t *testing.T, e *env) {
		want := session.Status{State: session.Connected, Servers: "h:1", Session: e.s, Timeout: timeout, Server: "h:1"}
		if got := e.m.Status(); got != want {
			t.Errorf("connected: %+v, want %+v", got, want)
		}
		e.Refuse(true)
		e.Disconnect()
		time.Sleep(2 * time.Second)
		got := e.m.Status()
		want.State, want.Failure = session.Suspended, got.Failure
		if got != want || got.Failure == nil {
			t.Errorf("suspended: %+v, want %+v", got, want)
		}
		e.Refuse(false)
		must(t, e.s.Sync(t.Context(), "/"))
		if got := e.m.Status(); got.State != session.Connected || got.Failure != nil || got.Session != e.s {
			t.Errorf("connected again: %+v", got)
		}
		e.Blackhole(zktest.ToClient)
		go func() { _ = e.s.Sync(t.Context(), "/") }()
		time.Sleep(e.s.Remaining() - time.Second)
		if got := e.m.Status(); got.Failure == nil || got.Session != e.s {
			t.Errorf("silence: %+v", got)
		}
		e.Heal()
		_ = e.m.Close()
		if got, want := e.m.Status(), (session.Status{State: session.Closed, Servers: "h:1", Timeout: timeout}); got != want {
			t.Errorf("closed: %+v, want %+v", got, want)
		}
	}, session.WithTimeout(timeout))
}
