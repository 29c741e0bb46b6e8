package lockz

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Many acquisitions, watches, holds and losses at once leave only the last losses behind.
func TestMemoryReturns(t *testing.T) {
	const many, most = 10000, 64 << 10
	r := new(recorder)
	round := func() {
		var ends []func()
		for i := range many {
			lock := fmt.Sprint("/locks/", i)
			ctx, acquired := r.acquire(t.Context(), session.AcquireInfo{Kind: "mutex", Path: lock})
			_, watched := r.watch(ctx, session.WatchInfo{Path: lock + "/n", Ahead: 1})
			watched(nil)
			if i%2 == 0 {
				ends = append(ends, func() { acquired(session.AcquireResult{Err: context.Canceled}) })
				continue
			}
			info := session.HoldInfo{Kind: "mutex", Path: lock, Node: lock + "/n"}
			over := r.hold(ctx, info)
			acquired(session.AcquireResult{})
			ends = append(ends, func() {
				over(session.ErrLost)
				r.loss(ctx, info, session.ErrLost)
			})
		}
		if r.waits.Len() != many/2 || r.holds.Len() != many/2 {
			t.Fatalf("%d waits and %d holds", r.waits.Len(), r.holds.Len())
		}
		for _, end := range ends {
			end()
		}
	}
	round()
	before := heap()
	for range 3 {
		round()
	}
	if grown := heap() - before; grown > most {
		t.Errorf("%d bytes more are in use", grown)
	}
	if r.waits.Len()+r.holds.Len()+r.watches.Len() != 0 || len(r.losses) != maxLosses || r.lossCount != 4*many/2 {
		t.Errorf("%d waits, %d holds, %d watches and %d of %d losses are left",
			r.waits.Len(), r.holds.Len(), r.watches.Len(), len(r.losses), r.lossCount)
	}
	runtime.KeepAlive(r)
}

// The page does not ask a lease for its end while its acquisition is still calling hooks: the hooks would
// not be told of a loss then. There is no lease here, so asking it panics.
func TestLeaseIsNotUsedBeforeItIsGiven(t *testing.T) {
	r := new(recorder)
	ctx, acquired := r.acquire(t.Context(), session.AcquireInfo{Kind: "mutex", Path: "/a"})
	over := r.hold(ctx, session.HoldInfo{Kind: "mutex", Path: "/a", Node: "/a/n"})
	asked := func() (asked bool) {
		defer func() { asked = recover() != nil }()
		r.copy(new(managerJSON), session.Connected)
		return false
	}
	if asked() {
		t.Error("a lease was asked before the acquisition has ended")
	}
	acquired(session.AcquireResult{})
	if !asked() {
		t.Error("no lease was asked after the acquisition has ended")
	}
	over(nil)
	if asked() {
		t.Error("a lease was asked after the hold")
	}
}

// A manager that is closed and no longer used is freed with its recorder.
func TestRecorderGoesWithItsManager(t *testing.T) {
	before := recording()
	for range 3 {
		func() {
			m, err := session.Connect(t.Context(), testserver.Server(t).Addr(0))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			Handler(m)
			Handler(m)
		}()
	}
	zktest.Eventually(t, testserver.Patience, "the recorders to be freed", func() bool {
		runtime.GC()
		return recording() <= before
	})
}

func recording() int {
	recorders.mu.Lock()
	defer recorders.mu.Unlock()
	return len(recorders.of)
}
