package queue

import (
	"context"
	"errors"
	"path"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

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
	c := &contender{place: place{q: q, s: s, kind: Mutex(), node: node}, own: own}
	c.me, _ = ParseNode(path.Base(node.Path))
	names, err := c.read(ctx, node.Listing, nil)
	if err != nil || len(names) != 1 {
		t.Errorf("before the delete: %v, %v", names, err)
	}
	testserver.Delete(t, node.Path)
	expect.Receive(t, "the news", own.Done())
	_, err = c.read(ctx, node.Listing, nil)
	expect.Match(t, "after the delete", err, errDeleted)
	expect.NoError(t, func() error { r := node.Remove(ctx); <-r.Done(); return r.Err() }())
}

// A lease is lost from the moment at which its turn is over, also if the goroutine that has found the loss has not ended the
// lease yet.
func TestLeaseOfLostTurn(t *testing.T) {
	q, err := New(testserver.Connect(t, testserver.Server(t).ConnectString()), testserver.Path(t))
	expect.NoError(t, err)
	l, err := q.Acquire(t.Context(), Request{Kind: Mutex()})
	expect.NoError(t, err)
	l.t.over.end(failed("lock", q.dir, session.ErrLost))
	if err := l.Err(); !errors.Is(err, session.ErrLost) {
		t.Errorf("the lease says %v", err)
	}
	select {
	case <-l.Done():
	default:
		t.Error("the lease has not ended")
	}
	if err := l.Release(t.Context()); !errors.Is(err, session.ErrLost) {
		t.Errorf("the release says %v", err)
	}
}

// A turn is lost while the Hold hook runs. The lease says so at once, and the hooks are told once the first has returned.
func TestLossIsToldOnce(t *testing.T) {
	var losses, ends atomic.Int32
	m := testserver.Connect(t, testserver.Server(t).Addr(0), session.WithTrace(session.Trace{
		Hold: func(ctx context.Context, _ session.HoldInfo) func(error) {
			l, _ := LeaseFrom(ctx)
			l.t.loseNode()
			expect.Match(t, "the lease within the hook", l.Err(), session.ErrLost)
			return func(error) { ends.Add(1) }
		},
		Loss: func(context.Context, session.HoldInfo, error) { losses.Add(1) },
	}))
	q, err := New(m, testserver.Path(t))
	expect.NoError(t, err)
	l, err := q.Acquire(expect.Patient(t), Request{Kind: Mutex()})
	expect.NoError(t, err)
	expect.Receive(t, "the end of the lease", l.Done())
	expect.Match(t, "the lease", l.Err(), session.ErrLost)
	expect.NoError(t, m.Close()) // it waits for the hooks
	if losses.Load() != 1 || ends.Load() != 1 {
		t.Errorf("told of %d losses and %d ends", losses.Load(), ends.Load())
	}
}

// counted is a kind whose limit is the data of the directory.
func counted(limit int) *Kind {
	return &Kind{Name: "counted", Prefixes: []string{PrefixLease}, Configuration: &Configuration{
		Config: []byte(strconv.Itoa(limit)),
		Policy: func(me Node, c Config) (Policy, error) {
			most, err := strconv.Atoi(string(c.Data))
			return LeasePolicy(me, most), err
		},
	}}
}

// A contender that asks for more than there is gets an error, and keeps out nobody: one that comes, one that tries while others are in its
// way, and one that waits when the limit is lowered. The nodes of others that ask for more are no error to anybody.
func TestMoreThanThereIs(t *testing.T) {
	ctx := expect.Patient(t)
	q, err := New(testserver.Connect(t, testserver.Server(t).Addr(0)), testserver.Path(t))
	expect.NoError(t, err)
	kind := counted(2)
	one, err := q.Acquire(ctx, Request{Kind: kind})
	expect.NoError(t, err)
	_, err = q.Acquire(ctx, Request{Kind: kind, Weight: 3})
	expect.Match(t, "3 of 2", err, session.ErrInvalid)
	got := make(chan error, 1)
	go func() {
		_, err := q.Acquire(ctx, Request{Kind: kind, Weight: 2})
		got <- err
	}()
	testserver.WaitChildren(t, q.Path(), 2)
	_, err = q.TryAcquire(ctx, Request{Kind: kind, Weight: 3})
	expect.Match(t, "a try for 3 of 2", err, session.ErrInvalid)
	s := testserver.Session(t, q.Manager())
	_, err = s.Set(ctx, q.Path(), []byte("1"), -1)
	expect.NoError(t, err)
	expect.Match(t, "2 of 1", expect.Receive(t, "the end of the waiter", got), session.ErrInvalid)
	_, err = testserver.Admin(t).Create(q.Path()+"/x9-lease-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	expect.NoError(t, err)
	all, err := q.Contenders(ctx, kind)
	expect.NoError(t, err)
	if len(all) != 2 || !all[0].Holder || all[1].Holder {
		t.Errorf("contenders %+v", all)
	}
	expect.NoError(t, one.Release(ctx))
}

// A turn has the configuration that has let it go.
func TestConfigOfTurn(t *testing.T) {
	ctx := expect.Patient(t)
	q, err := New(testserver.Connect(t, testserver.Server(t).Addr(0)), testserver.Path(t))
	expect.NoError(t, err)
	r := Request{Kind: counted(1), Prefix: PrefixLease, Weight: 1}
	first, _, err := q.Begin(ctx, &r, Waits)
	expect.NoError(t, err)
	if c := first.Config(); string(c.Data) != "1" || c.Version != 1 {
		t.Errorf("configuration %q, version %d", c.Data, c.Version)
	}
	second := make(chan *Turn, 1)
	go func() {
		again := r
		turn, _, err := q.Begin(ctx, &again, Waits)
		expect.NoError(t, err)
		second <- turn
	}()
	testserver.WaitChildren(t, q.Path(), 2)
	stat, err := first.Session().Set(ctx, q.Path(), []byte("2"), 1)
	expect.NoError(t, err)
	turn := expect.Receive(t, "the second turn", second)
	if c := turn.Config(); string(c.Data) != "2" || c.Version != 2 || c.Changed != stat.Mzxid {
		t.Errorf("configuration %q, version %d", c.Data, c.Version)
	}
	<-turn.Leave(ctx).Done()
	<-first.Leave(ctx).Done()
}
