package session_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A session does not get larger with time, whether it idles, reads or owns a node. What could grow is
// what it notes of each answer, and a day with tens of thousands of them shows that. TestTrailIsBounded of
// internal/clock has a month.
func TestSessionDoesNotGrow(t *testing.T) {
	const timeout, hour = 10 * time.Second, time.Hour
	for name, habit := range map[string]struct {
		owns         bool
		every        time.Duration // between two reads; 0: none
		early, after time.Duration
	}{
		"idles":                 {early: hour, after: longtest.Pick(2*hour, 24*hour)},
		"reads":                 {every: time.Second, early: hour / 2, after: 6 * hour},
		"reads often":           {every: 50 * time.Millisecond, early: hour / 12, after: longtest.Pick(hour/3, hour)},
		"owns a node":           {owns: true, early: hour, after: 12 * hour},
		"owns a node and reads": {owns: true, every: time.Second, early: hour / 2, after: longtest.Pick(hour, 6*hour)},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "reads" || name == "owns a node" {
				longtest.Only(t) // another habit has both
			}
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				_, s := virtually(t, "h:1", srv.Dialer(), session.WithTimeout(timeout), session.WithTickTime(2*time.Second))
				path, err := "/node", makeDir(t.Context(), s, "/node")
				must(t, err)
				if habit.owns {
					path, err = makeNode(t.Context(), s, "/own", nil)
					must(t, err)
				}
				begun := time.Now()
				live := func(until time.Duration) {
					for time.Since(begun) < until {
						if habit.every == 0 {
							time.Sleep(time.Minute)
							continue
						}
						time.Sleep(habit.every)
						_, _, err := s.Get(t.Context(), path)
						must(t, err)
					}
				}
				live(habit.early)
				early := heapWithout(srv)
				live(habit.after)
				late := heapWithout(srv)
				must(t, s.Err())
				if late > early+early/10 {
					t.Errorf("the heap had %d kB after %v, and %d kB after %v", early>>10, habit.early, late>>10, habit.after)
				}
			})
		})
	}
}

// heapWithout returns how many bytes are in use, without what the server notes of its requests.
func heapWithout(srv *zktest.Server) uint64 {
	srv.ResetRequests()
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
