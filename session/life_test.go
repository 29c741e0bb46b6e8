package session_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A session makes a node, hears of its end, survives a disconnection, and is closed on the server.
func TestLife(t *testing.T) {
	server := zktest.Start(t)
	ctx := t.Context()
	m, err := session.Connect(ctx, server.Addr()+"/app", session.WithTimeout(4*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Enter(ctx, session.NewNode{Dir: "/locks/a", Name: "lock-", Data: []byte("x"), Watch: true, Directory: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(n.Names) != 1 || n.Children.Event() != session.WatchPending || n.DataStat == nil {
		t.Errorf("entered with %+v", n.Listing)
	}
	data, _, w, err := s.Watch(ctx, n.Path)
	if err != nil || string(data) != "x" {
		t.Fatalf("watched: %q, %v", data, err)
	}
	r := n.Remove(ctx)
	<-r.Done()
	if err := r.Err(); err != nil || s.Removing(n.Path) {
		t.Errorf("removed: %v, still under way: %v", err, s.Removing(n.Path))
	}
	<-w.Done()
	if e := w.Event(); e != session.WatchDeleted {
		t.Errorf("the watch ended by %v", e)
	}
	<-n.Children.Done()
	server.Disconnect()
	fixed, err := s.Enter(ctx, session.NewNode{Dir: "/locks/a", Name: "one", Fixed: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.List(ctx, "/locks/a", session.ListOptions{Sync: true, Data: true})
	if err != nil || !slices.Equal(l.Names, []string{"one"}) {
		t.Errorf("listed %+v, %v", l, err)
	}
	if _, err := s.Create(ctx, "/b/c/d", nil, session.Persistent); err != nil {
		t.Error(err)
	}
	<-fixed.Remove(ctx).Done()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Err(); !errors.Is(err, session.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
