package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// An operator writes to the holder's node again and again. The waiter lists anew each time, and still
// gets the lock as soon as the holder releases it. Time is virtual, and a frame takes none.
func TestTouchedNodeDelaysNobody(t *testing.T) {
	for name, kind := range map[string]*queue.Kind{"fair": mutex, "unfair": unfair} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { touchAndRelease(t, kind) })
		})
	}
}

func touchAndRelease(t *testing.T, kind *queue.Kind) {
	server, err := zktest.New()
	mustBe(t, err, nil)
	defer func() { _ = server.Close() }()
	connect := func() *session.Manager {
		return testserver.Connect(t, "zookeeper", session.WithDialer(server.Dialer()))
	}
	operator := testserver.Session(t, connect())
	begin := func() *queue.Queue {
		q, err := queue.New(connect(), "/touched")
		mustBe(t, err, nil)
		return q
	}
	held, err := begin().Acquire(patient(t), queue.Request{Kind: kind})
	mustBe(t, err, nil)
	q, got := begin(), make(chan time.Time, 1)
	go func() {
		l, err := q.Acquire(context.Background(), queue.Request{Kind: kind})
		got <- time.Now()
		mustBe(t, err, nil)
		mustBe(t, l.Release(context.Background()), nil)
	}()
	for range 20 {
		time.Sleep(100 * time.Millisecond)
		_, err := operator.Set(patient(t), held.Path(), []byte("touched"), -1)
		mustBe(t, err, nil)
		synctest.Wait()
	}
	released := time.Now()
	mustBe(t, held.Release(patient(t)), nil)
	if d := (<-got).Sub(released); d > 20*time.Millisecond {
		t.Errorf("the waiter gets the lock after %v", d)
	}
	synctest.Wait()
}
