package gocron_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"github.com/turnstile-go/turnstile/election"
	adapter "github.com/turnstile-go/turnstile/examples/adapters/gocron"
	"github.com/turnstile-go/turnstile/examples/adapters/internal/ensemble"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestMain(m *testing.M) { ensemble.Main(m) }

const (
	every = time.Hour
	splay = 20 * time.Millisecond // between the timers of two replicas
)

var tick = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// replica is a process with a scheduler, whose clock is moved by the test.
type replica struct {
	*ensemble.Process
	clock *clockwork.FakeClock
	ended chan error // what the task has returned, or why the lock was refused
}

func start(t *testing.T) *replica {
	// Its clock stands a minute before the tick.
	return &replica{ensemble.Start(t), clockwork.NewFakeClockAt(tick.Add(-time.Minute)), make(chan error, 10)}
}

// schedule starts the scheduler of the replica with one job.
func (r *replica) schedule(t *testing.T, task func(context.Context) error, opts ...gocron.SchedulerOption) {
	t.Helper()
	s, err := gocron.NewScheduler(append(opts, gocron.WithClock(r.clock))...)
	ensemble.OK(t, err)
	t.Cleanup(func() { ensemble.OK(t, s.Shutdown()) })
	_, err = s.NewJob(gocron.DurationJob(every), gocron.NewTask(func(ctx context.Context) error {
		err := task(ctx)
		r.ended <- err
		return err
	}), gocron.WithName("report"), gocron.WithStartAt(gocron.WithStartDateTime(tick)))
	ensemble.OK(t, err)
	s.Start()
	r.armed(t)
}

// armed waits until the scheduler has set its timer.
func (r *replica) armed(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ensemble.Patience)
	defer cancel()
	ensemble.OK(t, r.clock.BlockUntilContext(ctx, 1))
}

// fire moves the clock of the replica past its next tick.
func (r *replica) fire(late time.Duration) { r.clock.Advance(time.Minute + late) }

// locker is the obvious gocron.Locker: a lock for each job, and a replica that finds it taken leaves the run out.
type locker struct{ locks *zklock.Keyed }

func (l locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	lease, err := l.locks.TryAcquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return unlocker{lease}, nil
}

type unlocker struct{ lease *queue.Lease }

func (u unlocker) Unlock(ctx context.Context) error {
	return u.lease.Release(context.WithoutCancel(ctx)) // that of the job ends with the scheduler
}

// A lock as gocron's Locker runs a short job once for each replica, if their timers differ by more than the job takes. Once
// runs it once.
func TestShortJob(t *testing.T) {
	for name, once := range map[string]bool{"Locker": false, "Once": true} {
		t.Run(name, func(t *testing.T) {
			const replicas = 3
			runs, want := 0, replicas
			job := func(context.Context) error { runs++; return nil }
			for i := range replicas {
				r := start(t)
				locks := ensemble.Must(zklock.NewKeyed(r.Manager, "/plain"))
				if once {
					want = 1
					r.schedule(t, adapter.Once(ensemble.Must(schedule.New(r.Manager, "/once")), every, r.clock.Now, job))
				} else {
					r.schedule(t, job, gocron.WithDistributedLocker(locker{locks}))
				}
				r.fire(time.Duration(i) * splay)
				ensemble.OK(t, ensemble.Wait(t, r.ended, "the task has been called"))
				r.Free(t, locks.Path("report")) // long before the next timer, 20 ms later
			}
			if runs != want {
				t.Errorf("%d runs at one tick of %d replicas, want %d", runs, replicas, want)
			}
		})
	}
}

// A replica that loses its session in the middle of a job is told, and another one takes the tick over.
func TestOnceAfterLoss(t *testing.T) {
	var mu sync.Mutex
	var order []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	begun := make(chan struct{})
	first, second := start(t), start(t)
	first.schedule(t, adapter.Once(ensemble.Must(schedule.New(first.Manager, "/loss")), every, first.clock.Now,
		func(ctx context.Context) error {
			note("first begins")
			close(begun)
			<-ctx.Done()
			note("first ends")
			return context.Cause(ctx)
		}))
	second.schedule(t, adapter.Once(ensemble.Must(schedule.New(second.Manager, "/loss")), every, second.clock.Now,
		func(context.Context) error {
			note("second")
			return nil
		}))
	first.fire(0)
	ensemble.Wait(t, begun, "the first replica has begun")
	second.fire(splay)
	first.Expire(t)
	if err := ensemble.Wait(t, first.ended, "the first task has ended"); !errors.Is(err, session.ErrLost) {
		t.Errorf("the first task has returned %v, want a loss", err)
	}
	ensemble.OK(t, ensemble.Wait(t, second.ended, "the second task has ended"))
	mu.Lock()
	defer mu.Unlock()
	if len(order) != 3 || order[0] != "first begins" {
		t.Errorf("order %q", order)
	}
}

// candidate starts a replica with an Elector.
func candidate(t *testing.T, path string) (*replica, *adapter.Elector) {
	t.Helper()
	r := start(t)
	elector := adapter.NewElector(ensemble.Must(election.New(r.Manager, path)))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- elector.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		ensemble.OK(t, ensemble.Wait(t, ended, "Run has returned"))
	})
	return r, elector
}

// gocron asks the Elector once. The context of Task is what ends a job of a former leader.
func TestElectorAfterLoss(t *testing.T) {
	leader, first := candidate(t, "/elector")
	zktest.Eventually(t, ensemble.Patience, "the first replica leads", func() bool { return first.IsLeader(t.Context()) == nil })
	follower, second := candidate(t, "/elector")

	begun := make(chan int64, 1)
	leader.schedule(t, first.Task(func(ctx context.Context) error {
		token, err := election.Term(ctx)
		if err != nil {
			return err
		}
		begun <- token
		<-ctx.Done()
		return context.Cause(ctx)
	}), gocron.WithDistributedElector(first))
	tokens := make(chan int64, 1)
	follower.schedule(t, second.Task(func(ctx context.Context) error {
		token, err := election.Term(ctx)
		tokens <- token
		return err
	}), gocron.WithDistributedElector(second))

	leader.fire(0)
	token := ensemble.Wait(t, begun, "the leader's job has begun")
	follower.fire(splay)
	follower.armed(t) // for the next tick
	if len(follower.ended) != 0 {
		t.Error("a follower has run the job")
	}
	leader.Expire(t)
	if err := first.IsLeader(t.Context()); !errors.Is(err, adapter.ErrNotLeader) {
		t.Errorf("IsLeader after a loss: %v", err)
	}
	if err := ensemble.Wait(t, leader.ended, "the leader's job has ended"); !errors.Is(err, session.ErrLost) {
		t.Errorf("the leader's job has returned %v, want a loss", err)
	}
	zktest.Eventually(t, ensemble.Patience, "the second replica leads", func() bool { return second.IsLeader(t.Context()) == nil })
	follower.clock.Advance(every)
	ensemble.OK(t, ensemble.Wait(t, follower.ended, "the job of the next leader has ended"))
	if next := <-tokens; next <= token {
		t.Errorf("token %d after %d", next, token)
	}
}
