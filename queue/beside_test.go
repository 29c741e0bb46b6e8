package queue_test

import (
	"context"
	"path"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

var (
	writing = queue.Request{Kind: &queue.Kind{
		Name:     "write",
		Prefixes: []string{queue.PrefixWrite, queue.PrefixRead},
		Policy: func(queue.Node) queue.Policy {
			return queue.Policy{Replaces: func(n queue.Node) bool { return n.Prefix == queue.PrefixWrite }}
		},
	}}
	reading = queue.Request{Kind: &queue.Kind{
		Name:     "read",
		Prefixes: []string{queue.PrefixRead, queue.PrefixWrite},
		Policy: func(queue.Node) queue.Policy {
			return queue.Policy{Weight: func(n queue.Node) int {
				if n.Prefix == queue.PrefixWrite {
					return 1
				}
				return 0
			}}
		},
	}}
)

// A writer becomes a reader. The next writer in the queue does not get in, whatever reply is lost.
func TestBeside(t *testing.T) {
	for _, c := range []struct {
		what  string
		fault func(*zktest.Proxy, zktest.Match) *zktest.Fault
	}{
		{"undisturbed", nil},
		{"the create is lost", (*zktest.Proxy).CutBefore},
		{"its reply is lost", (*zktest.Proxy).CutAfterCommit},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := persistentDir(t)
			q, proxy, _ := proxied(t, dir)
			w, err := q.Acquire(patient(t), writing)
			mustBe(t, err, nil)
			queued := begin(t, client(t, dir), writing)
			testserver.WaitChildren(t, dir, 2)
			if c.fault != nil {
				c.fault(proxy, ofContenders(dir, zktest.OpCreate))
			}
			r, err := w.Beside(patient(t), reading)
			mustBe(t, err, nil)
			wn, _ := queue.ParseNode(path.Base(w.Path()))
			rn, _ := queue.ParseNode(path.Base(r.Path()))
			if rn.Sequence != wn.Sequence || rn.Prefix != queue.PrefixRead {
				t.Errorf("%s beside %s", r.Path(), w.Path())
			}
			testserver.WaitChildren(t, dir, 3)
			release(t, w)
			_, err = client(t, dir).TryAcquire(patient(t), writing)
			mustBe(t, err, queue.ErrBusy)
			queued.waits(t, "a reader is inside")
			mustBe(t, r.Err(), nil)
			release(t, r)
			release(t, queued.get(t))
			testserver.WaitChildren(t, dir, 0)
		})
	}
}

// Beside fails for a lease that has ended, and leaves no node.
func TestBesideEnded(t *testing.T) {
	dir := persistentDir(t)
	q := client(t, dir)
	w, err := q.Acquire(patient(t), writing)
	mustBe(t, err, nil)
	ctx, cancel := context.WithCancel(patient(t))
	cancel()
	_, err = w.Beside(ctx, reading)
	mustBe(t, err, context.Canceled)
	release(t, w)
	_, err = w.Beside(patient(t), reading)
	mustBe(t, err, queue.ErrReleased)

	w, err = q.Acquire(patient(t), writing)
	mustBe(t, err, nil)
	testserver.Delete(t, w.Path())
	_, err = w.Beside(patient(t), reading) // also if the event has not come yet
	mustBe(t, err, session.ErrLost)
	testserver.WaitChildren(t, dir, 0)
}

// If the lease is released while Beside is under way, Beside returns ErrReleased.
func TestBesideReleased(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, _ := proxied(t, dir)
	w, err := q.Acquire(patient(t), writing)
	mustBe(t, err, nil)
	create := proxy.HoldReply(ofContenders(dir, zktest.OpCreate))
	list := proxy.HoldRequest(ofContenders(dir, zktest.OpGetChildren2))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err = w.Beside(patient(t), reading)
	}()
	await(t, create.Hit(), "the create")
	(*place.Lease)(w).StartRelease(patient(t), place.Done)
	testserver.Delete(t, w.Path()) // before the listing
	create.Release()
	list.Release()
	await(t, done, "Beside")
	mustBe(t, err, queue.ErrReleased)
}

// A lease that is taken beside another has its token, even if nobody had asked for that before. The
// next writer has entered before the reader, and its token must not be lower.
func TestBesideToken(t *testing.T) {
	for _, early := range []bool{false, true} {
		dir := persistentDir(t)
		q := client(t, dir)
		w, err := q.Acquire(patient(t), writing)
		mustBe(t, err, nil)
		if early {
			tokenOf(t, w)
		}
		queued := begin(t, client(t, dir), writing)
		testserver.WaitChildren(t, dir, 2)
		r, err := w.Beside(patient(t), reading)
		mustBe(t, err, nil)
		if tokenOf(t, r) != tokenOf(t, w) {
			t.Errorf("token %d beside %d", tokenOf(t, r), tokenOf(t, w))
		}
		release(t, w)
		of := tokenOf(t, r)
		release(t, r)
		next := queued.get(t)
		if n := tokenOf(t, next); n <= of {
			t.Errorf("token %d after %d", n, of)
		}
		release(t, next)
	}
}

// If the first node may not be read, neither lease has a token, and both are held.
func TestBesideWithoutToken(t *testing.T) {
	dir := persistentDir(t)
	q, _, _ := proxied(t, dir, session.WithACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...))
	w, err := q.Acquire(patient(t), writing)
	mustBe(t, err, nil)
	r, err := w.Beside(patient(t), reading)
	mustBe(t, err, nil)
	_, err = r.Token(patient(t))
	mustBe(t, err, zk.ErrNoAuth)
	release(t, w)
	mustBe(t, r.Err(), nil)
	release(t, r)
}

// Beside refuses what would let two contenders hold, before it sends anything.
func TestBesideRefuses(t *testing.T) {
	fewer := *reading.Kind
	fewer.Prefixes = []string{queue.PrefixRead}
	for _, c := range []struct {
		what         string
		held, beside queue.Request
	}{
		{"mutexes", ask, ask},
		{"a writer beside a reader", reading, writing},
		{"another kind's", writing, ask},
		{"fewer prefixes", writing, queue.Request{Kind: &fewer}},
		{"no kind", writing, queue.Request{}},
	} {
		t.Run(c.what, func(t *testing.T) {
			q, proxy, _ := proxied(t, persistentDir(t))
			l, err := q.Acquire(patient(t), c.held)
			mustBe(t, err, nil)
			proxy.ResetRequests()
			_, err = l.Beside(patient(t), c.beside)
			mustBe(t, err, session.ErrInvalid)
			if n := proxy.Count(ofContenders(q.Path(), zktest.OpCreate)); n > 0 {
				t.Errorf("%d creates", n)
			}
			mustBe(t, l.Err(), nil)
			release(t, l)
		})
	}
}
