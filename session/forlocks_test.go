package session_test

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A function that waits for the end of a session or a watch takes no goroutine before that, and runs once.
func TestAfterEndAndEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		_, s := virtually(t, "h:1", srv.Dialer())
		paths := []string{enter(t, s, "/d/a").Path, enter(t, s, "/d/b").Path}
		all, err := s.WatchNodes(t.Context(), append(paths, "/d/none")...)
		must(t, err)
		synctest.Wait()
		goroutines := runtime.NumGoroutine()
		var events, ends atomic.Int64
		event, end := func() { events.Add(1) }, func() { ends.Add(1) }
		var stops, stopped []func() bool
		for range 100 {
			stops = append(stops, all[0].AfterEvent(event), s.AfterEnd(end))
			stopped = append(stopped, all[0].AfterEvent(event), s.AfterEnd(end))
		}
		if n := runtime.NumGoroutine(); n != goroutines {
			t.Errorf("%d goroutines, %d before", n, goroutines)
		}
		for _, stop := range stopped {
			if !stop() || stop() {
				t.Error("a stop before the end reports what it has not done")
			}
		}
		must(t, srv.DeleteNode(paths[0]))
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
		must(t, srv.Expire(t.Context(), s.ID()))
		<-s.Done()
		synctest.Wait()
		for _, stop := range stops {
			if stop() {
				t.Error("a stop after the end")
			}
		}
		s.AfterEnd(end)
		synctest.Wait()
		if events.Load() != 102 || ends.Load() != 101 {
			t.Errorf("%d events, %d ends", events.Load(), ends.Load())
		}
	})
}

// A removal is under way until the servers have confirmed it. Cut tells of the end of the connection that it began with.
func TestRemoving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		_, s := virtually(t, "h:1", srv.Dialer())
		node, path := enter(t, s, "/d/one"), enter(t, s, "/d/other").Path
		for p, remove := range map[string]func() *session.Removal{
			node.Path: func() *session.Removal { return node.Remove(t.Context()) },
			path:      func() *session.Removal { return s.Remove(t.Context(), path) },
		} {
			if s.Removing(p) {
				t.Errorf("%s before the removal", p)
			}
			held := srv.HoldReply(zktest.On(zktest.OpDelete, p))
			r := remove()
			<-held.Hit()
			if !s.Removing(p) || isClosed(r.Cut()) {
				t.Errorf("%s: removing %v, cut %v", p, s.Removing(p), isClosed(r.Cut()))
			}
			srv.Disconnect()
			<-r.Cut()
			<-r.Done()
			must(t, r.Err())
			if s.Removing(p) {
				t.Errorf("%s after the removal", p)
			}
			held.Release()
		}
		srv.Refuse(true)
		srv.Disconnect()
		synctest.Wait()
		r := s.Remove(t.Context(), path)
		if !isClosed(r.Cut()) || !s.Removing(path) {
			t.Errorf("without a connection: cut %v, removing %v", isClosed(r.Cut()), s.Removing(path))
		}
		srv.Refuse(false)
		<-r.Done()
		if bad := s.Remove(t.Context(), "bad"); !isClosed(bad.Cut()) || s.Removing("bad") {
			t.Error("a removal that never began is under way")
		}
	})
}

// A nil function panics in the goroutine of the caller.
func TestNilFunction(t *testing.T) {
	m := testserver.Connect(t, testserver.Server(t).Addr(0))
	s := testserver.Session(t, m)
	_, _, w, err := s.Watch(patient(t), "/")
	must(t, err)
	for what, call := range map[string]func(){
		"Manager.Subscribe": func() { m.Subscribe(nil) }, "Manager.TellLoss": func() { m.TellLoss(nil) },
		"Session.AfterEnd": func() { s.AfterEnd(nil) }, "Watch.AfterEvent": func() { w.AfterEvent(nil) },
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.HasPrefix(got, "session: "+what+": nil function") {
					t.Errorf("%s: panic %q", what, got)
				}
			}()
			call()
		}()
	}
}
