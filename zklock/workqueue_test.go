package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// inJobs runs a test of a queue of work, in virtual time. worker opens the queue as another process does.
func inJobs(t *testing.T, f func(t *testing.T, server *zktest.Server, worker func() *jobs)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t)
		f(t, server, func() *jobs {
			m, err := session.Open(server.Hosts(), session.WithDialer(server.Dialer()), session.WithLogger(slog.New(slog.DiscardHandler)))
			must(t, err)
			t.Cleanup(func() { _ = m.Close() })
			j, err := openJobs(t.Context(), m, "/jobs")
			must(t, err)
			return j
		})
	})
}

// die ends the session of a worker, as its death or a long cut does.
func (j *jobs) die(t *testing.T, server *zktest.Server) {
	s, err := j.m.Session(t.Context())
	if err == nil {
		err = server.Expire(t.Context(), s.ID())
	}
	if err != nil {
		t.Error(err)
	}
}

// left returns the names in a directory.
func (j *jobs) left(t *testing.T, dir string) []string {
	t.Helper()
	s, err := j.m.Session(t.Context())
	must(t, err)
	names, _, err := s.Children(t.Context(), dir)
	must(t, err)
	return names
}

// Five workers on 30 items: their sessions are lost at random times. Each item is done, by one worker at a time. One that
// fails, and one that kills its workers, are begun three times each.
func TestWorkQueue(t *testing.T) {
	const workers, items, fails, kills = 5, 30, "item 7", "item 8"
	inJobs(t, func(t *testing.T, server *zktest.Server, worker func() *jobs) {
		ctx, cancel := context.WithCancel(t.Context())
		first := worker()
		for i := range items {
			must(t, first.add(ctx, fmt.Sprint("2026/", i), fmt.Sprint("item ", i)))
		}
		var mu sync.Mutex
		running, begun, done := map[string]context.Context{}, map[string]int{}, map[string]int{}
		var wg sync.WaitGroup
		for range workers {
			j := worker()
			do := func(ctx context.Context, work string) error {
				mu.Lock()
				if other := running[work]; other != nil && other.Err() == nil && ctx.Err() == nil {
					t.Errorf("two workers at %s", work)
				}
				running[work] = ctx
				begun[work]++
				mu.Unlock()
				switch {
				case work == fails:
					return errors.New("no such invoice")
				case work == kills, rand.IntN(10) == 0:
					mu.Lock()
					delete(running, work) // this worker learns of it a moment later, as if it were dead
					mu.Unlock()
					j.die(t, server)
				}
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(rand.N(5 * time.Second)):
				}
				mu.Lock()
				defer mu.Unlock()
				delete(running, work)
				done[work]++
				return nil
			}
			wg.Go(func() {
				for ctx.Err() == nil {
					_ = j.pass(ctx, do)
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
					}
				}
			})
		}
		for since := time.Now(); len(first.left(t, first.items)) > 0; time.Sleep(time.Second) {
			if time.Since(since) > time.Hour {
				t.Fatalf("not done: %q", first.left(t, first.items))
			}
		}
		cancel()
		wg.Wait()
		for i := range items {
			work := fmt.Sprint("item ", i)
			bad := work == fails || work == kills
			if done[work] == 0 && !bad && begun[work] < maxTries || bad && begun[work] != maxTries {
				t.Errorf("%s was begun %d times, and done %d times", work, begun[work], done[work])
			}
			if begun[work] > maxTries {
				t.Errorf("%s was begun %d times", work, begun[work])
			}
		}
		if n := len(first.left(t, first.failed)); n < 2 || n > 2+items/5 {
			t.Errorf("%d have failed", n)
		}
	})
}

// A worker that goes on after the loss of its lock takes no item away from the one that has it.
func TestWorkQueueLate(t *testing.T) {
	for what, lose := range map[string]func(t *testing.T, server *zktest.Server, former *jobs){
		"its session is lost": func(t *testing.T, server *zktest.Server, former *jobs) { former.die(t, server) },
		"its node is deleted": func(t *testing.T, server *zktest.Server, former *jobs) {
			lock := former.locks.Path("42")
			must(t, server.DeleteNode(lock+"/"+former.left(t, lock)[0]))
		},
	} {
		t.Run(what, func(t *testing.T) {
			inJobs(t, func(t *testing.T, server *zktest.Server, worker func() *jobs) {
				loseLate(t, worker(), worker(), func(former *jobs) { lose(t, server, former) })
			})
		})
	}
}

func loseLate(t *testing.T, a, b *jobs, lose func(former *jobs)) {
	ctx := t.Context()
	must(t, a.add(ctx, "42", "work"))
	begun, goOn := make(chan struct{}, 2), map[*jobs]chan struct{}{a: make(chan struct{}), b: make(chan struct{})}
	start := func(j *jobs) <-chan error {
		ended := background(func() error {
			return j.pass(ctx, func(context.Context, string) error { // does not look at its context
				begun <- struct{}{}
				<-goOn[j]
				return nil
			})
		})
		<-begun
		return ended
	}
	former := start(a)
	lose(a)
	present := start(b)
	close(goOn[a])
	if err := <-former; err == nil {
		t.Error("the former holder has ended without an error")
	}
	if len(a.left(t, a.items)) != 1 {
		t.Fatal("the former holder has removed an item that is being worked on")
	}
	close(goOn[b])
	must(t, <-present)
	if len(a.left(t, a.items))+len(a.left(t, a.failed)) != 0 {
		t.Error("the item is still there")
	}
}
