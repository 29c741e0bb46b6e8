package queue_test

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// bubble is a server in virtual time.
type bubble struct {
	*testing.T
	*zktest.Server
}

const (
	bubbleDir     = "/lock"
	bubbleTimeout = 10 * time.Second
)

func inBubble(t *testing.T, f func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(&bubble{t, zktest.Start(t, zktest.ContainerCheck(24*time.Hour))}) })
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// queue returns the queue as another process has it.
func (b *bubble) queue(dial dialer) *queue.Queue {
	b.T.Helper()
	m, err := session.Connect(b.Context(), b.Hosts(), session.WithDialer(dial), session.WithTimeout(bubbleTimeout),
		session.WithLogger(slog.New(slog.DiscardHandler)))
	expect.NoError(b, err)
	b.T.Cleanup(func() { _ = m.Close() })
	q, err := queue.New(m, bubbleDir)
	expect.NoError(b, err)
	return q
}

// acquire returns a lease. No call waits for longer than a minute.
func (b *bubble) acquire(q *queue.Queue, kind *queue.Kind) *queue.Lease {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	l, err := q.Acquire(ctx, queue.Request{Kind: kind})
	expect.NoError(b, err)
	return l
}

// contenders returns how many there are.
func (b *bubble) contenders(q *queue.Queue) int {
	b.T.Helper()
	all, err := q.Contenders(b.Context(), queue.Mutex())
	expect.NoError(b, err)
	return len(all)
}

// A lock is granted in a session that lasts. The session ends after the answers that would let the contender go, while its
// policy decides. It goes on in the next session.
func TestGrantAsksTheClock(t *testing.T) {
	inBubble(t, func(b *bubble) {
		q := b.queue(b.Dialer())
		s, err := q.Manager().Session(b.Context())
		expect.NoError(b, err)
		kind := queue.Mutex()
		decide := kind.Policy
		kind.Policy = func(me queue.Node) queue.Policy {
			if s.Err() == nil {
				b.Refuse(true)
				b.Disconnect()
				time.Sleep(2 * bubbleTimeout)
				b.Refuse(false)
			}
			return decide(me)
		}
		l := b.acquire(q, kind)
		if err := l.Err(); err != nil || l.Turn().Session() == s {
			t.Errorf("the lease: %v; granted by the session that has ended: %v", err, l.Turn().Session() == s)
		}
		expect.NoError(t, l.Release(b.Context()))
	})
}

// A call that gives up while it waits leaves nothing.
func TestWhoGivesUpLeavesNothing(t *testing.T) {
	inBubble(t, func(b *bubble) {
		q, other := b.queue(b.Dialer()), b.queue(b.Dialer())
		l := b.acquire(q, queue.Mutex())
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, err := other.Acquire(ctx, queue.Request{Kind: queue.Mutex()})
		expect.Match(t, "the wait", err, context.DeadlineExceeded)
		synctest.Wait()
		if n := b.contenders(q); n != 1 {
			t.Errorf("%d contenders, want the holder alone", n)
		}
		expect.NoError(t, l.Release(b.Context()))
	})
}

// A try that is busy has written nothing.
func TestBusyTryWritesNothing(t *testing.T) {
	inBubble(t, func(b *bubble) {
		q, other := b.queue(b.Dialer()), b.queue(b.Dialer())
		l := b.acquire(q, queue.Mutex())
		b.ResetRequests()
		_, err := other.TryAcquire(b.Context(), queue.Request{Kind: queue.Mutex()})
		expect.Match(t, "a try", err, queue.ErrBusy)
		for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpCreate2, zktest.OpMulti} {
			if n := b.Count(zktest.On(op, bubbleDir)); n != 0 {
				t.Errorf("%d requests %v", n, op)
			}
		}
		expect.NoError(t, l.Release(b.Context()))
	})
}

// deaf is a connection that drops the events of watches, as no server should.
type deaf struct {
	net.Conn
	rest []byte // of a frame that was let through
}

func (d *deaf) Read(p []byte) (int, error) {
	for len(d.rest) == 0 {
		var head [4]byte
		if _, err := io.ReadFull(d.Conn, head[:]); err != nil {
			return 0, err
		}
		frame := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(d.Conn, frame); err != nil {
			return 0, err
		}
		const event = ^uint32(0) // xid -1
		if binary.BigEndian.Uint32(frame) != event {
			d.rest = append(head[:], frame...)
		}
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// A waiter whose wake-up is lost looks again once in a session timeout.
func TestLostWakeUpCostsATimeout(t *testing.T) {
	inBubble(t, func(b *bubble) {
		q := b.queue(b.Dialer())
		waits := b.queue(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := b.Dialer()(ctx, network, addr)
			return &deaf{Conn: c}, err
		})
		l := b.acquire(q, queue.Mutex())
		began := time.Now()
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		got := make(chan error)
		go func() {
			_, err := waits.Acquire(ctx, queue.Request{Kind: queue.Mutex()})
			got <- err
		}()
		synctest.Wait()
		expect.NoError(t, l.Release(b.Context()))
		expect.NoError(t, <-got)
		if took := time.Since(began); took < time.Second || took > bubbleTimeout+time.Second {
			t.Errorf("after %v, want a session timeout", took)
		}
	})
}

// Near the end of the sequence numbers, who leaves the directory empty removes it, so that counting starts again. Before that
// it stays, until the servers remove it.
func TestCountingStartsAgain(t *testing.T) {
	inBubble(t, func(b *bubble) {
		before := queue.RestartFrom
		queue.RestartFrom = 2
		t.Cleanup(func() { queue.RestartFrom = before })
		q := b.queue(b.Dialer())
		for _, want := range []int32{0, 1, 2, 0} {
			l := b.acquire(q, queue.Mutex())
			if got := l.Turn().Holder().Sequence; got != want {
				t.Errorf("number %d, want %d", got, want)
			}
			expect.NoError(t, l.Release(b.Context()))
			synctest.Wait()
		}
	})
}
