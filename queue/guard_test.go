package queue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A write with the guard succeeds while the lease's node is there, and fails afterwards.
func TestGuard(t *testing.T) {
	for _, c := range []struct {
		what string
		end  func(*testing.T, *queue.Lease)
	}{
		{"released", func(t *testing.T, l *queue.Lease) { release(t, l) }},
		{"deleted", func(t *testing.T, l *queue.Lease) { testserver.Delete(t, l.Path()) }},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := persistentDir(t)
			target := put(t, testserver.Path(t), "", "old", 0)
			q, _, m := proxied(t, dir)
			l := acquire(t, q)
			write := func(data string) error {
				_, err := testserver.Session(t, m).Multi(patient(t),
					l.Guard(), &zk.SetDataRequest{Path: target, Data: []byte(data), Version: -1})
				return err
			}
			mustBe(t, write("new"), nil)
			// A change of the node's data is no loss of the lock.
			if _, err := testserver.Admin(t).Set(l.Path(), []byte("other"), -1); err != nil {
				t.Fatal(err)
			}
			mustBe(t, write("newer"), nil)
			c.end(t, l)
			mustBe(t, write("too late"), zk.ErrNoNode)
			if data, _, err := testserver.Admin(t).Get(target); err != nil || string(data) != "newer" {
				t.Errorf("%q was written: %v", data, err)
			}
		})
	}
}

// The context of a lease ends with the lease, with its parent, and with its cancel function. Its cause
// says which. The other two do not end the lease.
func TestLeaseContext(t *testing.T) {
	dir := persistentDir(t)
	l := acquire(t, client(t, dir))
	type key struct{}
	cause := errors.New("parent's cause")
	parent, end := context.WithCancelCause(context.WithValue(context.Background(), key{}, "value"))
	inside, cancel := l.Context(parent)
	defer cancel()
	other, cancelOther := l.Context(context.Background())
	third, cancelThird := l.Context(context.Background())
	defer cancelThird()
	if inside.Err() != nil || inside.Value(key{}) != "value" {
		t.Error("not made from its parent")
	}
	end(cause)
	await(t, inside.Done(), "the context")
	mustBe(t, context.Cause(inside), cause)
	cancelOther()
	mustBe(t, other.Err(), context.Canceled)
	mustBe(t, errors.Join(l.Err(), third.Err()), nil)
	release(t, l)
	await(t, third.Done(), "the context")
	mustBe(t, context.Cause(third), queue.ErrReleased)
	late, cancelLate := l.Context(context.Background())
	defer cancelLate()
	mustBe(t, context.Cause(late), queue.ErrReleased)
}

// The request by which a holder watches its node ends with the lease, also if it is not answered.
func TestContextOfTheGuard(t *testing.T) {
	dir := persistentDir(t)
	contexts := make(chan context.Context, 1)
	q, proxy, _ := proxied(t, dir, session.WithTrace(session.Trace{
		Request: func(ctx context.Context, info session.RequestInfo) (context.Context, func(error)) {
			if info.Op == "getData" {
				contexts <- ctx
			}
			return ctx, nil
		},
	}))
	hold := proxy.HoldReply(zktest.On(zktest.OpGetData, dir+"/"))
	defer hold.Release()
	l := acquire(t, q)
	inFlight := <-contexts
	if err := inFlight.Err(); err != nil {
		t.Errorf("the context of a request in flight ends before the lease: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = l.Release(ctx) // the answer comes behind the one that is held
	await(t, inFlight.Done(), "the end of the request")
	if err := context.Cause(inFlight); !errors.Is(err, queue.ErrReleased) {
		t.Errorf("the request has ended because of %v", err)
	}
}
