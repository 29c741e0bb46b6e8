package queue_test

import (
	"context"
	"path"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

func expire(t *testing.T, p *zktest.Proxy, m *session.Manager) {
	t.Helper()
	if err := p.Expire(patient(t), testserver.Session(t, m).ID()); err != nil {
		t.Fatal(err)
	}
}

// mustBeLost waits until the lease says that it is lost, in every way.
func mustBeLost(t *testing.T, l *queue.Lease, inside context.Context) {
	t.Helper()
	await(t, l.Done(), "Done")
	mustBe(t, l.Err(), session.ErrLost)
	await(t, inside.Done(), "the context")
	mustBe(t, context.Cause(inside), session.ErrLost)
	late, cancel := l.Context(context.Background())
	defer cancel()
	mustBe(t, context.Cause(late), session.ErrLost)
}

// The server expires a holder's session. The holder finds out, the next contender enters, and the late
// release deletes no other node.
func TestExpiredHolder(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, m := proxied(t, dir)
	l := acquire(t, q)
	inside, cancel := l.Context(context.Background())
	defer cancel()
	next := enter(t, client(t, dir), 2)
	last := enter(t, client(t, dir), 3)
	expire(t, proxy, m)
	n := next.get(t)
	mustBeLost(t, l, inside)
	testserver.Session(t, m) // the late release has a connection to go by
	proxy.ResetRequests()
	mustBe(t, l.Release(patient(t)), session.ErrLost)
	mustBe(t, l.Release(patient(t)), session.ErrLost)
	testserver.WaitChildren(t, dir, 2)
	last.waits(t, "the second holds")
	if err := n.Err(); err != nil {
		t.Error(err)
	}
	release(t, n)
	release(t, last.get(t))
	// The manager has another session by now, with nothing of the old one.
	release(t, acquire(t, q))
	for _, r := range proxy.Requests() {
		if r.Path == l.Path() {
			t.Errorf("%v of the lost node", r.Op)
		}
	}
}

// The server expires a waiter's session. Its call goes on, at the end of the queue.
func TestExpiredWaiter(t *testing.T) {
	dir := persistentDir(t)
	holder := acquire(t, client(t, dir))
	q, proxy, m := proxied(t, dir)
	w := enter(t, q, 2)
	other := enter(t, client(t, dir), 3)
	expire(t, proxy, m)
	testserver.WaitChildren(t, dir, 3) // it is back, behind the other
	w.waits(t, "others are ahead")
	other.waits(t, "the first holds")
	release(t, holder)
	o := other.get(t)
	w.waits(t, "the other holds")
	release(t, o)
	l := w.get(t)
	onlyChild(t, l)
	release(t, l)
	testserver.WaitChildren(t, dir, 0)
}

// A session expires while its create is under way. There is one node then, of the next session.
func TestExpiredWhileEntering(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, m := proxied(t, dir)
	hold := proxy.HoldReply(ofContenders(dir, zktest.OpCreate))
	c := begin(t, q, ask)
	await(t, hold.Hit(), "the create")
	expire(t, proxy, m)
	l := c.get(t)
	hold.Release()
	testserver.WaitChildren(t, dir, 1)
	onlyChild(t, l)
	release(t, l)
	testserver.WaitChildren(t, dir, 0)
}

// heldAndAwaited takes the lock, and has a rival wait for it. On a busy machine the holder can lose a short session
// before the rival waits. Then it tries again.
func heldAndAwaited(t *testing.T, q, rival *queue.Queue) (l *queue.Lease, next *call) {
	t.Helper()
	for range 10 {
		l, next = acquire(t, q), begin(t, rival, ask)
		zktest.Eventually(t, testserver.Patience, "the rival to wait, or the loss", func() bool {
			return l.Err() != nil || len(testserver.Children(t, q.Path())) == 2
		})
		if l.Err() == nil {
			return l, next
		}
		release(t, next.get(t))
	}
	t.Fatal("the holder has lost its session before it was cut off, ten times")
	panic("unreachable")
}

// A holder that is cut off knows that it has lost the lock before another contender enters.
func TestPartitionedHolderKnowsFirst(t *testing.T) {
	t.Parallel()
	for _, d := range []zktest.Direction{zktest.Both, zktest.ToServer} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			dir := persistentDir(t)
			q, proxy, _ := proxied(t, dir, session.WithTimeout(short))
			rival := client(t, dir)
			l, next := heldAndAwaited(t, q, rival)
			inside, cancel := l.Context(context.Background())
			defer cancel()
			atEntry := make(chan error, 1)
			go func() {
				<-next.done
				atEntry <- l.Err()
			}()
			proxy.Blackhole(d)
			n := next.get(t)
			mustBe(t, <-atEntry, session.ErrLost)
			mustBeLost(t, l, inside)
			proxy.Heal() // what was held up arrives late, and must do no harm
			again := enter(t, q, 2)
			if err := n.Err(); err != nil {
				t.Error(err)
			}
			mustBe(t, l.Release(patient(t)), session.ErrLost)
			release(t, n)
			release(t, again.get(t))
			testserver.WaitChildren(t, dir, 0)
		})
	}
}

// With WithLossOnSuspend a disconnection is a loss. The node of the lost session is deleted, although
// the server would keep it.
func TestLossOnSuspend(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, _ := proxied(t, dir, session.WithLossOnSuspend())
	l := acquire(t, q)
	inside, cancel := l.Context(context.Background())
	defer cancel()
	next := enter(t, client(t, dir), 2)
	proxy.Disconnect()
	mustBeLost(t, l, inside)
	n := next.get(t)
	if path.Base(n.Path()) == path.Base(l.Path()) {
		t.Error("the same node")
	}
	release(t, n)
}

// A holder's manager is closed. The lease says so, and the next contender enters.
func TestCloseEndsLease(t *testing.T) {
	dir := persistentDir(t)
	q, _, m := proxied(t, dir)
	l := acquire(t, q)
	next := enter(t, client(t, dir), 2)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, l.Done(), "Done")
	mustBe(t, l.Err(), session.ErrClosed)
	mustBe(t, l.Release(patient(t)), session.ErrClosed)
	release(t, next.get(t))
}
