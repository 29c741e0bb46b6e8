package semaphore_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// change is a Resize whose transaction is held back, while it holds the difference.
type change struct {
	w    world
	sem  *semaphore.Semaphore
	m    *session.Manager
	set  *zktest.Fault
	done *bubble.Call
	node string // of the difference
}

func (w world) change(from, to int) *change {
	w.T.Helper()
	c := &change{w: w, m: w.Connect()}
	c.sem = w.semOn(c.m, from)
	c.set = w.HoldRequest(w.of(c.m, zktest.On(zktest.OpMulti, dir+"/")))
	c.done = w.resize(c.sem, to)
	w.Await(c.set.Hit())
	nodes := w.Nodes(dir)
	c.node = nodes[len(nodes)-1]
	return c
}

// finish lets the transaction go, and waits until Resize has returned: its node has gone.
func (c *change) finish() {
	c.w.T.Helper()
	c.set.Release()
	c.w.Must(c.done.Err())
	c.w.limit(c.sem, 1)
}

// beginsAgain lets the transaction go, which comes too late, and waits until Resize enters again. That is held back.
func (c *change) beginsAgain() *zktest.Fault {
	c.w.T.Helper()
	again := c.w.HoldRequest(c.w.of(c.m, zktest.On(zktest.OpCreate, dir)))
	c.set.Release()
	c.w.Await(again.Hit())
	c.done.Waits("more are held than the new limit has")
	return again
}

// X has read the limit of two when the limit is lowered, and lists the contenders after that: Resize is not among them any more.
func TestStaleLimitInAListing(t *testing.T) {
	run(t, func(w world) {
		w.Make(dir, "")
		h, lower, m := w.take(w.sem(2), 1), w.change(2, 1), w.Connect()
		list := w.HoldRequest(w.of(m, listing(dir)))
		x := w.begin(w.semOn(m, 2), 1)
		w.Await(list.Hit())
		if w.Count(w.of(m, zktest.On(zktest.OpGetData, dir))) == 0 {
			t.Error("X has not read the limit")
		}
		lower.finish()
		list.Release()
		x.Waits("one is held of one")
		w.release(h)
		w.release(x.Get())
	})
}

// X waits for H and for the node of Resize, and sees that go. The change of the limit came before that.
func TestStaleLimitInAWait(t *testing.T) {
	run(t, func(w world) {
		w.Make(dir, "")
		h, lower, m := w.take(w.sem(2), 1), w.change(2, 1), w.Connect()
		x := w.begin(w.semOn(m, 2), 1)
		if w.Count(w.of(m, zktest.On(zktest.OpGetData, h.Path()))) == 0 {
			t.Error("X has not waited for H and Resize")
		}
		w.ResetRequests()
		lower.finish()
		x.Waits("one is held of one")
		if w.Count(w.of(m, listing(dir))) == 0 {
			t.Error("X has not listed again")
		}
		w.release(h)
		w.release(x.Get())
	})
}

// The node of Resize is deleted by hand before the transaction arrives, and X is let in by the limit of two. The transaction
// must not lower the limit any more: Resize begins again, and waits for what is to go.
func TestLateLowering(t *testing.T) {
	run(t, func(w world) {
		w.Make(dir, "")
		s := w.sem(2)
		h, lower := w.take(s, 1), w.change(2, 1)
		w.Remove(lower.node)
		x := w.take(w.sem(2), 1)
		again := lower.beginsAgain()
		w.limit(s, 2)
		again.Release()
		w.release(h)
		w.Must(lower.done.Err())
		w.limit(s, 1)
		w.busy(s, 1)
		w.release(x)
	})
}

// Another Resize raises the limit before the transaction that lowers it arrives, and what has been added is held. What the first
// one holds is not the difference any more: it begins again, and waits for the rest.
func TestLoweringAfterARaising(t *testing.T) {
	run(t, func(w world) {
		w.Make(dir, "")
		s := w.sem(2)
		h := w.take(s, 1)
		w.Must(s.Resize(w.Context(), 2)) // the limit is pinned: only the version tells of the change
		lower := w.change(2, 1)
		w.Must(s.Resize(w.Context(), 4))
		x := w.take(s, 2)
		again := lower.beginsAgain()
		w.limit(s, 4)
		again.Release()
		w.release(h)
		lower.done.Waits("two are held")
		w.release(x)
		w.Must(lower.done.Err())
		w.limit(s, 1)
	})
}

// Another Resize has raised the limit to more before the node of one that raises it stands, and all leases are held.
func TestRaisingBehindAnother(t *testing.T) {
	run(t, func(w world) {
		w.Make(dir, "")
		s, m := w.sem(2), w.Connect()
		w.release(w.take(s, 1))
		enters := w.HoldRequest(w.of(m, zktest.On(zktest.OpCreate, dir)))
		done := w.resize(w.semOn(m, 2), 3)
		w.Await(enters.Hit())
		w.Must(s.Resize(w.Context(), 9))
		all := w.take(s, 9)
		enters.Release()
		done.Waits("nine are held of nine")
		w.asksFor("-x6-")
		w.limit(s, 9)
		w.release(all)
		w.Must(done.Err())
		w.limit(s, 3)
	})
}

// anew makes the directory anew, with a limit of nine, all of which are held.
func (w world) anew() (*semaphore.Semaphore, *queue.Lease) {
	w.T.Helper()
	for _, node := range append(w.Nodes(dir), dir) {
		w.Remove(node)
	}
	w.Make(dir, "")
	s := w.sem(9)
	return s, w.take(s, 9)
}

// The directory is made anew, with another limit of the same version, before the transaction of a Resize arrives that raises the
// limit. It would lower that limit, of which all leases are held.
func TestLateRaising(t *testing.T) {
	run(t, func(w world) {
		w.Make(dir, "")
		s := w.sem(3)
		w.release(w.take(s, 1))
		raise := w.change(3, 5)
		other, all := w.anew()
		raise.set.Release()
		raise.done.Waits("nine are held of nine")
		w.asksFor("-x4-lease-")
		w.limit(other, 9)
		w.release(all)
		w.Must(raise.done.Err())
		w.limit(s, 5)
	})
}

// The session of a Resize has read the limit before, and has not heard yet that the directory was made anew since, with another
// limit of the same version. Resize does not go by what it remembers.
func TestRaisingByAnOldLimit(t *testing.T) {
	run(t, func(w world) {
		w.Make(dir, "")
		m := w.Connect()
		s := w.semOn(m, 3)
		for range 2 {
			w.release(w.take(s, 1)) // the first sets the limit, and the second watches it
		}
		read := w.HoldReply(w.of(m, zktest.On(zktest.OpGetData, dir)))
		news := w.HoldReply(w.of(m, zktest.On(zktest.OpNotification, dir)))
		done := w.resize(s, 5)
		w.Await(read.Hit())
		other, all := w.anew()
		w.ResetRequests()
		read.Release()
		w.Await(news.Hit())
		w.contenders(2)
		expect.Requests(t, "reads of the limit by Resize with its node", w.Server, w.of(m, zktest.On(zktest.OpGetData, dir)), 0)
		news.Release()
		done.Waits("nine are held of nine")
		w.asksFor("-x4-lease-")
		w.limit(other, 9)
		w.release(all)
		w.Must(done.Err())
		w.limit(s, 5)
	})
}
