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

// A session is as small after a day as after an hour, whether it idles, reads or owns a node. What could grow is
// what it notes of each answer, and a day with tens of thousands of them shows that. TestTrailIsBounded of
// internal/wire has a month.
func TestSessionDoesNotGrow(t *testing.T) {
	const timeout = 10 * time.Second
	for name, habit := range map[string]struct {
		owns  bool
		every time.Duration // between two reads; 0: none
		after time.Duration
	}{
		"idles":                 {after: longtest.Pick(4*time.Hour, 24*time.Hour)},
		"reads":                 {every: time.Second, after: longtest.Pick(3*time.Hour, 12*time.Hour)},
		"reads often":           {every: 50 * time.Millisecond, after: longtest.Pick(90*time.Minute, 3*time.Hour)},
		"owns a node":           {owns: true, after: longtest.Pick(3*time.Hour, 12*time.Hour)},
		"owns a node and reads": {owns: true, every: time.Second, after: longtest.Pick(3*time.Hour, 12*time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				_, s := virtually(t, "h:1", srv.Dialer(), session.WithTimeout(timeout), session.WithTickTime(2*time.Second))
				mode := session.Persistent
				if habit.owns {
					mode = session.Ephemeral
				}
				path, err := s.Create(t.Context(), "/node", nil, mode)
				must(t, err)
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
				live(time.Hour)
				early := heapWithout(srv)
				live(habit.after)
				late := heapWithout(srv)
				must(t, s.Err())
				if late > early+early/10 {
					t.Errorf("the heap had %d kB after an hour, and %d kB after %v", early>>10, late>>10, habit.after)
				}
				t.Logf("%d kB after an hour, %d kB after %v", early>>10, late>>10, habit.after)
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
