package election_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// schedule is a job that one of many replicas runs at each tick.
type schedule struct {
	m    *session.Manager
	lock *zklock.Mutex
	last string // the path of the mark: its data is the last tick that was taken
}

func newSchedule(m *session.Manager, path string) (*schedule, error) {
	lock, err := zklock.New(m, path+"/lock")
	if err != nil {
		return nil, err
	}
	return &schedule{m, lock, path + "/last"}, nil
}

// atMostOnce runs the job of a tick unless a replica has begun it.
func (s *schedule) atMostOnce(ctx context.Context, tick time.Time, job func(context.Context) error) error {
	return s.lock.Do(ctx, func(ctx context.Context) error {
		version, due, err := s.due(ctx, tick)
		if err != nil || !due {
			return err
		}
		if err := s.mark(ctx, tick, version); err != nil {
			return err
		}
		return job(ctx)
	})
}

// atLeastOnce runs the job of a tick unless a replica has finished it.
func (s *schedule) atLeastOnce(ctx context.Context, tick time.Time, job func(context.Context) error) error {
	return s.lock.Do(ctx, func(ctx context.Context) error {
		version, due, err := s.due(ctx, tick)
		if err != nil || !due {
			return err
		}
		if err := job(ctx); err != nil {
			return err
		}
		return s.mark(ctx, tick, version)
	})
}

// due reports whether no replica has marked the tick or a later one, and returns the version of the mark.
func (s *schedule) due(ctx context.Context, tick time.Time) (version int32, due bool, err error) {
	zoo, err := s.m.Session(ctx)
	if err != nil {
		return 0, false, err
	}
	data, stat, err := zoo.Get(ctx, s.last)
	if errors.Is(err, zk.ErrNoNode) { // the first tick of all; the lock has made the directory
		if _, err = zoo.Create(ctx, s.last, nil, session.Persistent); err == nil || errors.Is(err, zk.ErrNodeExists) {
			data, stat, err = zoo.Get(ctx, s.last)
		}
	}
	if err != nil {
		return 0, false, err
	}
	return stat.Version, string(data) < name(tick), nil
}

// mark marks the tick. The guard and the mark are one transaction, so a replica that has lost the lock
// marks nothing.
func (s *schedule) mark(ctx context.Context, tick time.Time, version int32) error {
	lease, ok := queue.LeaseFrom(ctx)
	if !ok {
		return errors.New("mark without the lock")
	}
	zoo, err := s.m.Session(ctx)
	if err != nil {
		return err
	}
	_, err = zoo.Multi(ctx, lease.Guard(), &zk.SetDataRequest{Path: s.last, Data: []byte(name(tick)), Version: version})
	return err
}

// name is the same in all replicas, and later ticks sort behind earlier ones.
func name(tick time.Time) string { return tick.UTC().Format("2006-01-02T15:04:05Z") }

// Once per schedule: three replicas fire at each tick, and one of them runs the job.
func Example_oncePerTick() {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()

	tick := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for range 2 {
		var replicas sync.WaitGroup
		for range 3 {
			replicas.Go(func() { // in practice, a process with a timer
				m, err := session.Connect(ctx, server.ConnectString())
				if err != nil {
					log.Fatal(err)
				}
				defer m.Close()
				report, err := newSchedule(m, "/jobs/report")
				if err != nil {
					log.Fatal(err)
				}
				err = report.atMostOnce(ctx, tick, func(context.Context) error {
					fmt.Println("report of", tick.Format(time.Kitchen))
					return nil
				})
				if err != nil {
					log.Fatal(err)
				}
			})
		}
		replicas.Wait()
		tick = tick.Add(time.Hour)
	}
	// Output:
	// report of 10:00AM
	// report of 11:00AM
}
