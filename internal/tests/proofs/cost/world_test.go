package cost

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestMain(m *testing.M) { testserver.Main(m) }

const (
	// oneWay is how long every frame takes, each way.
	oneWay = time.Millisecond
	// roundTrip is how long a write takes, and a read. The server itself takes no time.
	roundTrip = 2 * oneWay
	// tick is ZooKeeper's default. The longest session timeout is twenty of it.
	tick = 2 * time.Second
	// longTimeout is the session timeout where locks are measured. A waiter looks again once in a
	// timeout, and with this one it does not do so meanwhile.
	longTimeout = 20 * tick
	// pause is long enough for whatever is under way to end, and short beside a heartbeat.
	pause = 5 * roundTrip
	// mostSessions bounds the number of sessions, because each costs this process memory. More takers share the sessions
	// in turn, so that neighbours in the queue are of different sessions.
	mostSessions = 100

	lockPath  = "/locks/one"
	permits   = 5   // of the semaphore
	handovers = 100 // of the shared mutex, before others have their turn
)

// world is one server and its clients, in a bubble.
type world struct{ *bubble.World }

// in runs f in a world of its own, in virtual time.
func in(t *testing.T, f func(*world)) {
	bubble.Run(t, func(w *bubble.World) {
		w.Delay(oneWay)
		f(&world{w})
	}, zktest.TickTime(tick))
}

func (w *world) manager(timeout time.Duration) *session.Manager {
	w.Helper()
	return w.Connect(session.WithTimeout(timeout))
}

// watches returns how many watches the server has.
func (w *world) watches() int {
	w.Helper()
	metrics, err := w.Metrics()
	w.Must(err)
	n, err := strconv.Atoi(metrics["zk_watch_count"])
	w.Must(err)
	return n
}

// trips returns a time in round trips.
func trips(d time.Duration) float64 { return float64(d) / float64(roundTrip) }

// traffic has how many requests of each kind the server got.
type traffic map[zktest.Op]int

// traffic returns the requests of all sessions but some since ResetRequests.
func (w *world) traffic(but ...int64) traffic {
	t := make(traffic)
	for _, r := range w.Requests() {
		counts := true
		for _, s := range but {
			counts = counts && s != r.Session
		}
		if counts {
			t[r.Op]++
		}
	}
	return t
}

func (t traffic) of(ops ...zktest.Op) (n int) {
	for _, op := range ops {
		n += t[op]
	}
	return n
}

func (t traffic) all() (n int) {
	for _, c := range t {
		n += c
	}
	return n
}

// taker is one contender: it takes the lock, and returns how to give it back.
type taker func(context.Context) (giveBack func() error, err error)

func takeBy(acquire func(context.Context) (*queue.Lease, error)) taker {
	return func(ctx context.Context) (func() error, error) {
		lease, err := acquire(ctx)
		if err != nil {
			return nil, err
		}
		return func() error { return lease.Release(ctx) }, nil
	}
}

// team makes takers over some sessions. Those of a session share an object if shared is true.
func (w *world) team(n, sessions int, shared bool, lockFor opens) []taker {
	w.Helper()
	var managers []*session.Manager
	for range min(n, sessions) {
		managers = append(managers, w.manager(longTimeout))
	}
	takers := make([]taker, n)
	for i := range takers {
		if shared && i >= len(managers) {
			takers[i] = takers[i-len(managers)]
			continue
		}
		one, err := lockFor(managers[i%len(managers)])
		w.Must(err)
		takers[i] = one
	}
	return takers
}

// opens makes the lock of one session.
type opens func(*session.Manager) (taker, error)

func mutexOf(opts ...zklock.Option) opens {
	return func(m *session.Manager) (taker, error) {
		l, err := zklock.New(m, lockPath, opts...)
		return takeBy(l.Acquire), err
	}
}

func writerOf(opts ...rwlock.Option) opens {
	return func(m *session.Manager) (taker, error) {
		l, err := rwlock.New(m, lockPath, opts...)
		return takeBy(l.Acquire), err
	}
}

func readerOf(opts ...rwlock.Option) opens {
	return func(m *session.Manager) (taker, error) {
		l, err := rwlock.New(m, lockPath, opts...)
		return takeBy(l.Reader().Acquire), err
	}
}

func semaphoreOf(m *session.Manager) (taker, error) {
	l, err := semaphore.New(m, lockPath, permits)
	return takeBy(l.Acquire), err
}
