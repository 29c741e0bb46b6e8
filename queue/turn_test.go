package queue

import (
	"context"
	"path"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/session"
)

const dirOfTurns = "/lock"

// queueOf returns a queue of a new process.
func queueOf(w *bubble.World, opts ...session.Option) *Queue {
	w.T.Helper()
	q, err := New(w.Connect(opts...), dirOfTurns)
	w.Must(err)
	return q
}

func acquire(w *bubble.World, q *Queue, r Request) *Lease {
	w.T.Helper()
	l, err := q.Acquire(w.Context(), r)
	w.Must(err)
	return l
}

// The first contender of a lock with a configuration sets that, and lists again. If somebody deletes its node in between, the
// contender has to enter again: without a node it would keep out nobody.
func TestDeletedWhileItConfigures(t *testing.T) {
	bubble.Run(t, func(w *bubble.World) {
		var deleted atomic.Bool
		l := acquire(w, queueOf(w, session.WithTrace(session.Trace{
			Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
				if r.Op == "setData" && deleted.CompareAndSwap(false, true) {
					w.Want("the deletion", w.DeleteNode(w.Nodes(dirOfTurns)[0]), nil)
				}
				return ctx, nil
			},
		})), Request{Kind: counted(1)})
		if all := w.Nodes(dirOfTurns); !deleted.Load() || len(all) != 1 || all[0] != l.Path() {
			t.Errorf("held by %s, and the directory has %v; a node was deleted: %v", l.Path(), all, deleted.Load())
		}
	})
}

// The watch on a contender's node has told that the node was deleted. A server that lags behind, to which the session has
// gone since, still lists it. That grants nothing.
func TestListedAfterItsDelete(t *testing.T) {
	bubble.Run(t, func(w *bubble.World) {
		q := queueOf(w)
		s := w.Session(q.m)
		node, err := s.Enter(w.Context(), session.NewNode{Dir: q.dir, Name: nodeName(PrefixLock, 1, false)})
		w.Must(err)
		_, _, own, err := s.Watch(w.Context(), node.Path)
		w.Must(err)
		c := &contender{place: place{q: q, s: s, kind: Mutex(), node: node}, own: own}
		c.me, _ = ParseNode(path.Base(node.Path))
		if names, err := c.read(w.Context(), node.Listing, nil); err != nil || len(names) != 1 {
			t.Errorf("before the delete: %v, %v", names, err)
		}
		w.Remove(node.Path)
		w.Await(own.Done())
		w.Want("after the delete", expect.Err(c.read(w.Context(), node.Listing, nil)), errDeleted)
		w.Await(node.Remove(w.Context()).Done())
	})
}

// A lease is lost from the moment at which its turn is over, also if the goroutine that has found the loss has not ended the
// lease yet.
func TestLeaseOfLostTurn(t *testing.T) {
	bubble.Run(t, func(w *bubble.World) {
		q := queueOf(w)
		l := acquire(w, q, Request{Kind: Mutex()})
		l.t.over.end(failed("lock", q.dir, session.ErrLost))
		w.Want("the lease", l.Err(), session.ErrLost)
		select {
		case <-l.Done():
		default:
			t.Error("the lease has not ended")
		}
		w.Want("the release", l.Release(w.Context()), session.ErrLost)
	})
}

// A turn is lost while the Hold hook runs. The lease says so at once, and the hooks are told once the first has returned.
func TestLossIsToldOnce(t *testing.T) {
	bubble.Run(t, func(w *bubble.World) {
		var losses, ends atomic.Int32
		q := queueOf(w, session.WithTrace(session.Trace{
			Hold: func(ctx context.Context, _ session.HoldInfo) func(error) {
				l, _ := LeaseFrom(ctx)
				l.t.loseNode()
				w.Want("the lease within the hook", l.Err(), session.ErrLost)
				return func(error) { ends.Add(1) }
			},
			Loss: func(context.Context, session.HoldInfo, error) { losses.Add(1) },
		}))
		l := acquire(w, q, Request{Kind: Mutex()})
		w.Await(l.Done())
		w.Want("the lease", l.Err(), session.ErrLost)
		w.Must(q.m.Close()) // it waits for the hooks
		if losses.Load() != 1 || ends.Load() != 1 {
			t.Errorf("told of %d losses and %d ends", losses.Load(), ends.Load())
		}
	})
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
	bubble.Run(t, func(w *bubble.World) {
		q, kind := queueOf(w), counted(2)
		acquire(w, q, Request{Kind: kind})
		_, err := q.Acquire(w.Context(), Request{Kind: kind, Weight: 3})
		w.Want("3 of 2", err, session.ErrInvalid)
		waits := w.Go(func() error { _, err := q.Acquire(w.Context(), Request{Kind: kind, Weight: 2}); return err })
		_, err = q.TryAcquire(w.Context(), Request{Kind: kind, Weight: 3})
		w.Want("a try for 3 of 2", err, session.ErrInvalid)
		waits.Waits("one is held of two")
		w.Write(dirOfTurns, "1")
		w.Want("2 of 1", waits.Err(), session.ErrInvalid)
		w.Forge(dirOfTurns, "x9-lease-")
		if all, err := q.Contenders(w.Context(), kind); err != nil || len(all) != 2 || !all[0].Holder || all[1].Holder {
			t.Errorf("contenders %+v, %v", all, err)
		}
	})
}

// A turn has the configuration that has let it go.
func TestConfigOfTurn(t *testing.T) {
	bubble.Run(t, func(w *bubble.World) {
		q := queueOf(w)
		begin := func() (*Turn, error) {
			turn, _, err := q.Begin(w.Context(), &Request{Kind: counted(1), Prefix: PrefixLease, Weight: 1}, Waits)
			return turn, err
		}
		first, err := begin()
		w.Must(err)
		if c := first.Config(); string(c.Data) != "1" || c.Version != 1 {
			t.Errorf("configuration %q, version %d", c.Data, c.Version)
		}
		var second *Turn
		waits := w.Go(func() (err error) { second, err = begin(); return err })
		waits.Waits("one is held of one")
		stat, err := first.Session().Set(w.Context(), dirOfTurns, []byte("2"), 1)
		w.Must(err)
		w.Must(waits.Err())
		if c := second.Config(); string(c.Data) != "2" || c.Version != 2 || c.Changed != stat.Mzxid {
			t.Errorf("configuration %q, version %d", c.Data, c.Version)
		}
		w.Await(second.Leave(w.Context()).Done())
		w.Await(first.Leave(w.Context()).Done())
	})
}
