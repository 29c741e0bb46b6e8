package asynq_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/turnstile-go/turnstile/election"
	adapter "github.com/turnstile-go/turnstile/examples/adapters/asynq"
	"github.com/turnstile-go/turnstile/examples/adapters/internal/ensemble"
)

func TestMain(m *testing.M) { ensemble.Main(m) }

// quiet is a logger that says nothing.
type quiet struct{}

func (quiet) Debug(...any) {}
func (quiet) Info(...any)  {}
func (quiet) Warn(...any)  {}
func (quiet) Error(...any) {}
func (quiet) Fatal(...any) {}

// enqueued is what a replica says of a task.
type enqueued struct {
	replica string
	err     error
}

// replica starts a process that enqueues a task each second while it leads. hold, if it is not nil, is called before.
func replica(t *testing.T, name, addr string, hold func(), out chan<- enqueued) *ensemble.Process {
	t.Helper()
	p := ensemble.Start(t)
	e := ensemble.Must(election.New(p.Manager, "/asynq", election.WithID(name)))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	opts := &asynq.SchedulerOpts{
		Logger:          quiet{},
		PreEnqueueFunc:  func(*asynq.Task, []asynq.Option) { hold() },
		PostEnqueueFunc: func(_ *asynq.TaskInfo, err error) { out <- enqueued{name, err} },
	}
	go func() {
		ended <- adapter.Run(ctx, e, &redis.Options{Addr: addr}, opts, func(s *asynq.Scheduler) error {
			_, err := s.Register("@every 1s", asynq.NewTask("report", nil))
			return err
		})
	}()
	t.Cleanup(func() {
		cancel()
		ensemble.OK(t, ensemble.Wait(t, ended, "Run has returned"))
	})
	return p
}

// The leader loses its session when it is about to enqueue a task. It enqueues nothing more, and another replica does.
func TestLoss(t *testing.T) {
	server := miniredis.RunT(t)
	out := make(chan enqueued, 1000)
	about, lost := make(chan struct{}), make(chan struct{})
	var tasks atomic.Int64
	first := replica(t, "first", server.Addr(), func() {
		switch tasks.Add(1) {
		case 1: // is enqueued
			return
		case 2:
			close(about)
		}
		<-lost
	}, out)
	if got := ensemble.Wait(t, out, "a task"); got.err != nil || got.replica != "first" {
		t.Fatalf("the first task: %+v", got)
	}
	ensemble.Wait(t, about, "the next task of the leader")
	replica(t, "second", server.Addr(), func() {}, out)
	first.Expire(t)
	if got := ensemble.Wait(t, out, "a task of the next leader"); got.err != nil || got.replica != "second" {
		t.Fatalf("the task after the loss: %+v", got)
	}
	close(lost) // the former leader goes on
	for {
		got := ensemble.Wait(t, out, "the task of the former leader")
		if got.replica == "first" {
			if got.err == nil || !strings.Contains(got.err.Error(), adapter.ErrNotLeader.Error()) { // asynq does not wrap it
				t.Errorf("a former leader has enqueued a task: %v", got.err)
			}
			return
		}
	}
}
