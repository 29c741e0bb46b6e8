package queue_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// An observer is told of the first contender, of the next one when that leaves, and that nobody is left. Its last pair says
// why it ends.
func TestObserve(t *testing.T) {
	dir := testserver.Path(t)
	q, observer := client(t, dir), client(t, dir)
	ctx, cancel := context.WithCancel(patient(t))
	defer cancel()
	next, stop := iter.Pull2(observer.Observe(ctx, queue.Mutex()))
	defer stop()
	want := func(what, id string) {
		t.Helper()
		first, err, more := next()
		if err != nil || !more || first.ID != id || first.Holder != (id != "") || (first.Path == "") != (id == "") {
			t.Fatalf("%s: %+v, %v, %v; want %q", what, first, err, more, id)
		}
	}
	named := func(id string) queue.Request { return queue.Request{Kind: queue.Mutex(), Data: []byte(id)} }
	isFirst := func(id string) {
		t.Helper()
		first, err := observer.First(ctx, queue.Mutex())
		if err != nil || first.ID != id || (first.Path == "") != (id == "") {
			t.Errorf("First: %+v, %v; want %q", first, err, id)
		}
	}
	want("no directory", "")
	isFirst("")
	one, err := q.Acquire(patient(t), named("one"))
	mustBe(t, err, nil)
	want("a holder", "one")
	isFirst("one")
	two := make(chan *queue.Lease, 1)
	go func() {
		l, err := q.Acquire(context.WithoutCancel(ctx), named("two"))
		if err != nil {
			t.Error(err)
		}
		two <- l
	}()
	testserver.WaitChildren(t, dir, 2)
	release(t, one)
	want("the next", "two")
	release(t, <-two)
	want("nobody", "")
	isFirst("")
	cancel()
	if _, err, more := next(); !more || !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of ctx: %v, %v", err, more)
	}
	if _, _, more := next(); more {
		t.Error("another pair after an error")
	}
}

// Observe says what is wrong with its kind, and with contenders of another kind.
func TestObserveRefuses(t *testing.T) {
	q := client(t, testserver.Path(t))
	for _, err := range q.Observe(patient(t), &queue.Kind{}) {
		if !errors.Is(err, session.ErrInvalid) {
			t.Errorf("a bad kind: %v", err)
		}
	}
	if _, err := q.First(patient(t), &queue.Kind{}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("First of a bad kind: %v", err)
	}
	lease, err := q.Acquire(patient(t), queue.Request{Kind: queue.Reader()})
	mustBe(t, err, nil)
	for _, err := range q.Observe(patient(t), queue.Mutex()) {
		if !errors.Is(err, queue.ErrConflict) {
			t.Errorf("a reader: %v", err)
		}
	}
	release(t, lease)
}

// An Observe that ends while it lists a directory leaves no watch on it.
func TestObserveLeavesNoWatch(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		const dir = "/locks/one"
		s, err := m.Session(t.Context())
		mustBe(t, err, nil)
		for _, path := range []string{"/locks", dir} {
			_, err = s.Create(t.Context(), path, nil, session.Persistent)
			mustBe(t, err, nil)
		}
		held := server.HoldReply(nth(3, ofContenders(dir, zktest.OpGetChildren2))) // behind the one that sets the watch
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			for _, err := range on(t, m, dir).Observe(ctx, mutex) {
				ended <- err
			}
		}()
		<-held.Hit()
		cancel()
		mustBe(t, <-ended, context.Canceled)
		held.Release()
		wantNoWatch(t, server)
	})
}

// wantNoWatch fails if a server in a bubble has a watch, once all that is under way has ended.
func wantNoWatch(t *testing.T, server *zktest.Server) {
	t.Helper()
	synctest.Wait()
	metrics, err := server.Metrics()
	mustBe(t, err, nil)
	if n := metrics["zk_watch_count"]; n != "0" {
		t.Errorf("%s watches are left", n)
	}
}
