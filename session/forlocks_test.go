package session_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A function that waits for the end of a session or a watch takes no goroutine before that, and runs once.
func TestAfterEndAndEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		paths := []string{enter(t, e.s, "/d/a").Path, enter(t, e.s, "/d/b").Path}
		all, err := e.s.WatchNodes(t.Context(), append(paths, "/d/none")...)
		must(t, err)
		synctest.Wait()
		goroutines := runtime.NumGoroutine()
		var events, ends atomic.Int64
		event, end := func() { events.Add(1) }, func() { ends.Add(1) }
		var stops, stopped []func() bool
		for range 100 {
			stops = append(stops, all[0].AfterEvent(event), e.s.AfterEnd(end))
			stopped = append(stopped, all[0].AfterEvent(event), e.s.AfterEnd(end))
		}
		if n := runtime.NumGoroutine(); n != goroutines {
			t.Errorf("%d goroutines, %d before", n, goroutines)
		}
		for _, stop := range stopped {
			if !stop() || stop() {
				t.Error("a stop before the end reports what it has not done")
			}
		}
		must(t, e.DeleteNode(paths[0]))
		synctest.Wait()
		if events.Load() != 100 || ends.Load() != 0 {
			t.Errorf("%d events, %d ends", events.Load(), ends.Load())
		}
		if all[2].AfterEvent(event)() {
			t.Error("a stop after the event")
		}
		all[1].AfterEvent(func() { // it may call what it likes
			if _, stat := all[1].Data(); all[1].Event() == session.WatchBroken && stat != nil {
				event()
			}
		})
		must(t, e.Expire(t.Context(), e.s.ID()))
		<-e.s.Done()
		synctest.Wait()
		for _, stop := range stops {
			if stop() {
				t.Error("a stop after the end")
			}
		}
		e.s.AfterEnd(end)
		synctest.Wait()
		if events.Load() != 102 || ends.Load() != 101 {
			t.Errorf("%d events, %d ends", events.Load(), ends.Load())
		}
	})
}

// A removal is under way until the servers have confirmed it. Cut tells of the end of the connection that it began with.
func TestRemoving(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		node := enter(t, e.s, e.d+"/n")
		want := func(when string, r *session.Removal, cut, removing bool) {
			t.Helper()
			if r != nil && isClosed(r.Cut()) != cut || e.s.Removing(node.Path) != removing {
				t.Errorf("%s: removing %v, want %v; cut is to be %v", when, e.s.Removing(node.Path), removing, cut)
			}
		}
		want("before the removal", nil, false, false)
		held := e.HoldReply(zktest.On(zktest.OpDelete, node.Path))
		r := node.Remove(t.Context())
		<-held.Hit()
		want("in flight", r, false, true)
		e.Disconnect()
		must(t, gone(r))
		want("after the removal", r, true, false)
		e.Refuse(true)
		e.Disconnect()
		synctest.Wait()
		r = e.s.Remove(t.Context(), node.Path)
		want("without a connection", r, true, true)
		e.Refuse(false)
		must(t, gone(r))
		want("a bad path", e.s.Remove(t.Context(), "bad"), true, false)
	})
}
