package queue

import (
	"context"
	"path"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// The first contender of a lock with a configuration sets that, and lists again. If somebody deletes its node in between, the
// contender has to enter again: without a node it would keep out nobody.
func TestDeletedWhileItConfigures(t *testing.T) {
	dir := testserver.Path(t)
	var deleted atomic.Pointer[string]
	m := testserver.Connect(t, testserver.Server(t).Addr(0), session.WithTrace(session.Trace{
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if r.Op == "setData" && deleted.Load() == nil {
				name := testserver.Children(t, dir)[0]
				deleted.Store(&name)
				testserver.Delete(t, dir, name)
			}
			return ctx, func(error) {}
		},
	}))
	q, err := New(m, dir)
	expect.NoError(t, err)
	l, err := q.Acquire(expect.Patient(t), Request{Kind: counted(1)})
	expect.NoError(t, err)
	if deleted.Load() == nil {
		t.Fatal("no node was deleted")
	}
	if all := testserver.Children(t, dir); len(all) != 1 || all[0] != path.Base(l.Path()) {
		t.Errorf("held by %s, and the directory has %v", l.Path(), all)
	}
	expect.NoError(t, l.Release(expect.Patient(t)))
}

// The watch on a contender's node has told that the node was deleted. A server that lags behind, to which the session has
// gone since, still lists it. That grants nothing.
func TestListedAfterItsDelete(t *testing.T) {
	ctx := expect.Patient(t)
	q, err := New(testserver.Connect(t, testserver.Server(t).Addr(0)), testserver.Path(t))
	expect.NoError(t, err)
	s := testserver.Session(t, q.m)
	node, err := s.Enter(ctx, session.NewNode{Dir: q.dir, Name: nodeName(PrefixLock, 1, false)})
	expect.NoError(t, err)
	_, _, own, err := s.Watch(ctx, node.Path)
	expect.NoError(t, err)
	c := &contender{place: place{q: q, s: s, node: node}, own: own}
	c.me, _ = ParseNode(path.Base(node.Path))
	names, err := c.standing(node.Names, nil)
	if err != nil || len(names) != 1 {
		t.Errorf("before the delete: %v, %v", names, err)
	}
	testserver.Delete(t, node.Path)
	expect.Receive(t, "the news", own.Done())
	_, err = c.standing(node.Names, nil)
	expect.Match(t, "after the delete", err, errDeleted)
	expect.NoError(t, func() error { r := node.Remove(ctx); <-r.Done(); return r.Err() }())
}
