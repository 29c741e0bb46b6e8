package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// An operator writes to the holder's node again and again. The waiter lists anew each time, and still
// gets the lock as soon as the holder releases it. Time is virtual, and a frame takes none.
func TestTouchedNodeDelaysNobody(t *testing.T) {
	synctest.Test(t, touchAndRelease)
}

// touching is an in-process server, and an operator who writes to nodes.
type touching struct {
	server   *zktest.Server
	operator *session.Session
}

func newTouching(t *testing.T) *touching {
	server, err := zktest.New()
	mustBe(t, err, nil)
	w := &touching{server: server}
	t.Cleanup(func() { _ = server.Close() })
	w.operator = testserver.Session(t, w.connect(t))
	return w
}

func (w *touching) connect(t *testing.T) *session.Manager {
	return testserver.Connect(t, "zookeeper", session.WithDialer(w.server.Dialer()))
}

// queue returns the queue of another process.
func (w *touching) queue(t *testing.T) *queue.Queue {
	q, err := queue.New(w.connect(t), "/touched")
	mustBe(t, err, nil)
	return q
}

// touch writes to the node again and again.
func (w *touching) touch(t *testing.T, node string) {
	for range 20 {
		time.Sleep(100 * time.Millisecond)
		_, err := w.operator.Set(patient(t), node, []byte("touched"), -1)
		mustBe(t, err, nil)
		synctest.Wait()
	}
}

func touchAndRelease(t *testing.T) {
	w := newTouching(t)
	held, err := w.queue(t).Acquire(patient(t), ask)
	mustBe(t, err, nil)
	q, got := w.queue(t), make(chan time.Time, 1)
	go func() {
		l, err := q.Acquire(context.Background(), ask)
		got <- time.Now()
		mustBe(t, err, nil)
		mustBe(t, l.Release(context.Background()), nil)
	}()
	w.touch(t, held.Path())
	released := time.Now()
	mustBe(t, held.Release(patient(t)), nil)
	if d := (<-got).Sub(released); d > 20*time.Millisecond {
		t.Errorf("the waiter gets the lock after %v", d)
	}
	synctest.Wait()
}

// The operator deletes the node in the end. The holder, which has set its watch anew each time, is
// told at once.
func TestTouchedHolderIsTold(t *testing.T) {
	synctest.Test(t, touchAndDelete)
}

func touchAndDelete(t *testing.T) {
	w := newTouching(t)
	held, err := w.queue(t).Acquire(patient(t), ask)
	mustBe(t, err, nil)
	w.touch(t, held.Path())
	mustBe(t, w.operator.Delete(patient(t), held.Path(), -1), nil)
	deleted := time.Now()
	<-held.Done()
	mustBe(t, held.Err(), session.ErrLost)
	if d := time.Since(deleted); d > 20*time.Millisecond {
		t.Errorf("the holder is told after %v", d)
	}
	synctest.Wait()
}
