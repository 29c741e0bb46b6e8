package semaphore_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// A call with a limit other than the one in force gets an error with both numbers, and no lease. That also holds when no
// lease is held, as long as the directory exists.
func TestConflictOfLimits(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	persistent(t, dir, "")
	s := newSem(t, connect(t), dir, 3)
	l := take(t, s, 1)
	if got := dataOf(t, dir); got != `{"maxLeases":3,"default":true,"version":1}` {
		t.Errorf("data %s", got)
	}
	for _, limit := range []int{1, 2, 4, 1000} {
		other := newSem(t, connect(t), dir, limit)
		_, err := other.Acquire(ctx)
		wantErr(t, "Acquire", err, queue.ErrConflict)
		wantText(t, err, "3", fmt.Sprint(limit))
		got, err := other.TryLock(ctx)
		wantErr(t, "TryLock", err, queue.ErrConflict)
		_, listErr := other.Contenders(ctx)
		wantErr(t, "Contenders", listErr, queue.ErrConflict)
		if got {
			t.Error("granted")
		}
	}
	release(t, l)
	_, err := newSem(t, connect(t), dir, 4).Acquire(ctx)
	wantErr(t, "Acquire of nobody's", err, queue.ErrConflict)
	testserver.WaitChildren(t, dir, 0)
	release(t, take(t, newSem(t, connect(t), dir, 3), 3))

	// The limit goes with the directory.
	testserver.Delete(t, dir)
	release(t, take(t, newSem(t, connect(t), dir, 4), 4))
}

// Contenders with two limits come to a new directory at the same time. One limit gets into force, contenders with the
// other get a conflict, or find the semaphore busy before there is a limit, and no more leases are held than the limit
// allows.
func TestFirstComersOfTwoLimits(t *testing.T) {
	const rounds, few, many = 30, 1, 3
	ctx := patient(t)
	clients := []*session.Manager{connect(t), connect(t)}
	won := make(map[int]int)
	for range rounds {
		dir := testserver.Path(t)
		persistent(t, dir, "") // a directory that vanishes when empty could get both limits in turn
		type outcome struct {
			limit int
			lease *queue.Lease
			err   error
		}
		results := make(chan outcome, 2*many)
		var start sync.WaitGroup
		start.Add(1)
		for i, limit := range []int{few, many} {
			s := newSem(t, clients[i], dir, limit)
			for range many {
				go func() {
					start.Wait()
					l, err := s.TryAcquire(ctx)
					results <- outcome{limit, l, err}
				}()
			}
		}
		start.Done()
		granted := make(map[int][]*queue.Lease)
		conflicts := make(map[int]int)
		for range 2 * many {
			switch r := receive(t, "an outcome", results); {
			case r.err == nil:
				granted[r.limit] = append(granted[r.limit], r.lease)
			case errors.Is(r.err, queue.ErrConflict):
				conflicts[r.limit]++
				wantText(t, r.err, "1", "3")
			default:
				wantErr(t, "TryAcquire", r.err, queue.ErrBusy)
			}
		}
		winner, loser := few, many
		if strings.Contains(dataOf(t, dir), fmt.Sprint(many)) {
			winner, loser = many, few
		}
		won[winner]++
		if conflicts[winner] != 0 {
			t.Errorf("%d conflicts for the limit of %d, which is in force", conflicts[winner], winner)
		}
		if n := len(granted[winner]); n > winner || len(granted[loser]) > 0 {
			t.Errorf("%d grants where %d are in force, and %d of the other limit", n, winner, len(granted[loser]))
		}
		release(t, granted[winner]...)
	}
	t.Logf("rounds won, by limit: %v", won)
}

// Data that is not a semaphore's is left alone, and each contender uses the limit that it was given.
func TestForeignData(t *testing.T) {
	ctx := patient(t)
	for _, data := range []string{
		"10.0.0.7", "null", `{"maxLeases":0}`, `{"maxLeases":"3"}`, `{"maxLeases":3}x`, `{"maxLeases":2147483648}`, "\x00\xff",
	} {
		t.Run(data, func(t *testing.T) {
			dir := testserver.Path(t)
			persistent(t, dir, data)
			s := newSem(t, connect(t), dir, 2)
			l := take(t, s, 2)
			busy(t, s, 1)
			waits := enter(t, s, 1)
			all, err := s.Contenders(ctx)
			if err != nil || len(all) != 2 || !all[0].Holder || all[1].Holder {
				t.Errorf("contenders %+v, %v", all, err)
			}
			wantErr(t, "Resize to more", s.Resize(ctx, 5), queue.ErrConflict)
			wantErr(t, "Resize to fewer", s.Resize(ctx, 1), queue.ErrConflict)
			release(t, l)
			release(t, waits.get(t))
			if got := dataOf(t, dir); got != data {
				t.Errorf("data %q, was %q", got, data)
			}
		})
	}
}

// The format of a semaphore's data does not matter. A limit that was written by hand counts for everybody. A limit that
// New has written is a conflict for contenders with another limit.
func TestOwnData(t *testing.T) {
	for data, byHand := range map[string]bool{
		`{"maxLeases":3}`:                                    true,
		` { "maxLeases" : 3 } `:                              true,
		`{"maxLeases":3,"since":"1.0"}`:                      true,
		`{"maxLeases":3,"default":false}`:                    true,
		`{"maxLeases":3,"default":true}`:                     false,
		`{"default":true, "maxLeases":3, "note": "of ours"}`: false,
	} {
		dir := testserver.Path(t)
		persistent(t, dir, data)
		other := newSem(t, connect(t), dir, 2)
		if byHand {
			l := take(t, other, 3)
			busy(t, other, 1)
			release(t, l)
		} else {
			_, err := other.TryAcquire(patient(t))
			wantErr(t, data, err, queue.ErrConflict)
		}
		testserver.WaitChildren(t, dir, 0)
		release(t, take(t, newSem(t, connect(t), dir, 3), 3))
		if got := dataOf(t, dir); got != data {
			t.Errorf("data %q, was %q", got, data)
		}
	}
}
