package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
)

// inJobs runs a test of a queue of work, in virtual time. worker opens the queue as another process does.
func inJobs(t *testing.T, f func(w *world, worker func() *jobs)) {
	t.Helper()
	run(t, func(w *world) {
		f(w, func() *jobs {
			j, err := openJobs(w.Context(), w.Connect(), "/jobs")
			w.Must(err)
			return j
		})
	})
}

// die ends the session of a worker, as its death or a long cut does.
func (j *jobs) die(w *world) {
	s, err := j.m.Session(w.Context())
	if err == nil {
		err = w.Expire(w.Context(), s.ID())
	}
	w.Want("the end of a session", err, nil)
}

// left returns the names in a directory.
func (j *jobs) left(w *world, dir string) []string {
	w.T.Helper()
	names, _, err := w.Admin().Children(w.Context(), dir)
	w.Must(err)
	return names
}

// Five workers on 30 items: their sessions are lost at random times. Each item is done, by one worker at a time. One that
// fails, and one that kills its workers, are begun three times each.
func TestWorkQueue(t *testing.T) {
	const workers, items, fails, kills = 5, 30, "item 7", "item 8"
	inJobs(t, func(w *world, worker func() *jobs) {
		ctx, cancel := context.WithCancel(w.Context())
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
					j.die(w)
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
		for since := time.Now(); len(first.left(w, first.items)) > 0; time.Sleep(time.Second) {
			if time.Since(since) > time.Hour {
				t.Fatalf("not done: %q", first.left(w, first.items))
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
		if n := len(first.left(w, first.failed)); n < 2 || n > 2+items/5 {
			t.Errorf("%d have failed", n)
		}
	})
}

// A worker that goes on after the loss of its lock takes no item away from the one that has it.
func TestWorkQueueLate(t *testing.T) {
	for _, lose := range []func(w *world, former *jobs){
		func(w *world, former *jobs) { former.die(w) },
		func(w *world, former *jobs) { w.Remove(w.Nodes(former.locks.Path("42"))[0]) },
	} {
		inJobs(t, func(w *world, worker func() *jobs) {
			a, b := worker(), worker()
			w.Must(a.add(w.Context(), "42", "work"))
			goOn := map[*jobs]chan struct{}{a: make(chan struct{}), b: make(chan struct{})}
			start := func(j *jobs) *bubble.Call {
				return w.Go(func() error {
					return j.pass(w.Context(), func(context.Context, string) error { // does not look at its context
						<-goOn[j]
						return nil
					})
				})
			}
			former := start(a)
			lose(w, a)
			w.Pass(time.Second)
			present := start(b)
			close(goOn[a])
			if former.Err() == nil {
				t.Error("the former holder has ended without an error")
			}
			if len(a.left(w, a.items)) != 1 {
				t.Fatal("the former holder has removed an item that is being worked on")
			}
			close(goOn[b])
			w.Must(present.Err())
			if len(a.left(w, a.items))+len(a.left(w, a.failed)) != 0 {
				t.Error("the item is still there")
			}
		})
	}
}
