package session_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

func startWatches(t *testing.T, s *session.Session, paths ...string) []*core.Watch {
	t.Helper()
	all, err := (*core.Session)(s).StartWatches(patient(t), paths...)
	must(t, err)
	return all
}

func wantWatch(t *testing.T, w *core.Watch, want session.WatchEvent) {
	t.Helper()
	ended := make(chan struct{}, 1)
	defer w.Notify(ended)()
	within(t, ended, "the event")
	if got := session.WatchEvent(w.Event()); got != want {
		t.Fatalf("event %v, want %v", got, want)
	}
}

// One request sets watches on several nodes. That on a node that is gone ends at once. A caller that needs the data shares the
// watch, and asks for the data alone.
func TestStartWatches(t *testing.T) {
	p, _, s := behindProxy(t, 20*time.Second)
	d, ctx := dir(t, s), patient(t)
	for _, name := range []string{"/a", "/b", "/c"} {
		_, err := s.Create(ctx, d+name, []byte(name), session.Ephemeral)
		must(t, err)
	}
	w := startWatches(t, s, d+"/a", d+"/gone", d+"/b", d+"/c")
	wantWatch(t, w[1], session.WatchDeleted)
	again := startWatches(t, s, d+"/c", d+"/a")
	if again[0] != w[3] || again[1] != w[0] || w[0].Answered() {
		t.Error("the watches are not shared, or have data")
	}
	data, _, shared, err := (*core.Session)(s).Watch(ctx, d+"/a")
	must(t, err)
	if shared != w[0] || string(data) != "/a" || !w[0].Answered() {
		t.Errorf("data %q, another watch: %v", data, shared != w[0])
	}
	if n := p.Count(zktest.Any(zktest.OpSetWatches)); n != 2 {
		t.Errorf("%d requests for watches", n)
	}
	if n := p.Count(zktest.On(zktest.OpGetData, d)); n != 1 {
		t.Errorf("%d requests for data", n)
	}
	_, err = testserver.Admin(t).Set(d+"/b", nil, -1)
	must(t, err)
	wantWatch(t, w[2], session.WatchChanged)
	testserver.Delete(t, d+"/a")
	wantWatch(t, w[0], session.WatchDeleted)
	p.Disconnect()
	wantWatch(t, w[3], session.WatchBroken)
	c := startWatches(t, s, d+"/c")[0]
	testserver.Delete(t, d+"/c")
	wantWatch(t, c, session.WatchDeleted)
}

// Writes before the watches are set do not end them, as long as the session has heard of them.
func TestStartWatchesAfterWrites(t *testing.T) {
	_, _, s := behindProxy(t, 20*time.Second)
	d, ctx := dir(t, s), patient(t)
	for i := range 100 {
		node := fmt.Sprint(d, "/", i)
		_, err := s.Create(ctx, node, nil, session.Ephemeral)
		must(t, err)
		_, err = testserver.Admin(t).Set(node, []byte("x"), -1)
		must(t, err)
		_, err = s.Exists(ctx, node)
		must(t, err)
		w := startWatches(t, s, node)[0]
		must(t, s.Sync(ctx, node)) // the answer to the watch comes before
		if e := w.Event(); e != core.WatchPending {
			t.Fatalf("event %v", e)
		}
	}
}

// Many watches go in several requests, which fit every server.
func TestStartManyWatches(t *testing.T) {
	p, _, s := behindProxy(t, 20*time.Second)
	d := dir(t, s)
	var paths []string
	for i := range 500 {
		paths = append(paths, fmt.Sprintf("%s/%s%d", d, strings.Repeat("x", 100), i))
	}
	for _, w := range startWatches(t, s, paths...) {
		wantWatch(t, w, session.WatchDeleted)
	}
	if n := p.Count(zktest.Any(zktest.OpSetWatches)); n < 4 || n > 8 {
		t.Errorf("%d requests", n)
	}
}

// A request that loses its connection ends the watches for all that share them.
func TestStartWatchesLost(t *testing.T) {
	p, _, s := behindProxy(t, 20*time.Second)
	d, ctx := dir(t, s), patient(t)
	_, err := s.Create(ctx, d+"/a", nil, session.Ephemeral)
	must(t, err)
	for _, cut := range []func(zktest.Match) *zktest.Fault{p.CutBefore, p.CutAfterCommit} {
		cut(zktest.Any(zktest.OpSetWatches))
		wantWatch(t, startWatches(t, s, d+"/a")[0], session.WatchBroken)
		_, _, _, err := s.Watch(ctx, d+"/a") // connected again
		must(t, err)
		p.Disconnect()
		must(t, s.Sync(ctx, d))
	}
	if _, err := (*core.Session)(s).StartWatches(ctx, d+"/a", "bad"); err == nil {
		t.Error("a bad path is watched")
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := (*core.Session)(s).StartWatches(ended, d+"/a"); err == nil {
		t.Error("watched for a context that has ended")
	}
}

// A hook ends its goroutine before a request that sets a watch, which another goroutine shares already. The watch is set.
func TestStartWatchesHookEnds(t *testing.T) {
	inHook, goOn := make(chan struct{}), make(chan struct{})
	var seen atomic.Bool
	_, _, s := behindProxy(t, 20*time.Second, session.WithTrace(session.Trace{
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if r.Op == "setWatches" && seen.CompareAndSwap(false, true) {
				close(inHook)
				<-goOn
				runtime.Goexit()
			}
			return ctx, nil
		},
	}))
	d := dir(t, s)
	_, err := s.Create(patient(t), d+"/a", nil, session.Ephemeral)
	must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = (*core.Session)(s).StartWatches(context.Background(), d+"/a")
	}()
	within(t, inHook, "the hook")
	shared := startWatches(t, s, d+"/a")[0]
	close(goOn)
	within(t, ended, "the end of the goroutine")
	testserver.Delete(t, d+"/a")
	wantWatch(t, shared, session.WatchDeleted)
}

// A hook panics at the first of two requests. Both set their watches.
func TestStartWatchesHookPanics(t *testing.T) {
	var once sync.Once
	_, _, s := behindProxy(t, 20*time.Second, session.WithTrace(session.Trace{
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if r.Op == "setWatches" {
				once.Do(func() { panic("hook") })
			}
			return ctx, nil
		},
	}))
	d := dir(t, s)
	a, b := d+"/a"+strings.Repeat("x", 9000), d+"/b"+strings.Repeat("x", 9000)
	for _, p := range []string{a, b} {
		_, err := s.Create(patient(t), p, nil, session.Ephemeral)
		must(t, err)
	}
	all := startWatches(t, s, a, b)
	must(t, s.Sync(patient(t), d))
	for i, p := range []string{a, b} {
		testserver.Delete(t, p)
		wantWatch(t, all[i], session.WatchDeleted)
	}
}
