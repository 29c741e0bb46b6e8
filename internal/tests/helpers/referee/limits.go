package referee

import (
	"math"
	"slices"
	"sync"
	"time"
)

// Limits are the limits of one semaphore, and the times at which each may have been in force. There is
// one server, so a limit is in force for all as soon as Resize has returned. But an earlier answer
// can still be on its way to a client. So a contender decides by a limit that was in force at some
// time since it sent the listing that lets it in.
type Limits struct {
	mu  sync.Mutex
	all []*limit
}

// limit is the argument of a Resize, or the first limit of the semaphore.
type limit struct {
	most   int
	called int64
	ended  int64 // when Resize returned
	known  bool  // Resize has returned that it is so
	gone   int64 // since then another has been in force for certain
}

// forgetAfter is how long a former limit is remembered: longer than any wait.
const forgetAfter = int64(time.Minute)

func newLimits(most int) *Limits {
	return &Limits{all: []*limit{{most: most, known: true, gone: math.MaxInt64}}}
}

// Change is called before a Resize, and the function that it returns after it, with the result. A
// Resize that has failed may have been carried out, or may be carried out later. It will not be
// after a later Resize has returned, because a limit is set only if no other was set since the one
// before was read.
func (l *Limits) Change(most int) (ended func(error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := Now()
	one := &limit{most: most, called: now, ended: math.MaxInt64, gone: math.MaxInt64}
	l.all = append(slices.DeleteFunc(l.all, func(o *limit) bool { return o.gone < now-forgetAfter }), one)
	return func(err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		one.ended, one.known = Now(), err == nil
		for _, o := range l.all {
			if one.known && o.ended < one.called {
				o.gone = min(o.gone, one.ended)
			}
		}
	}
}

// since returns the highest limit that may have been in force at some time since another.
func (l *Limits) since(view int64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := 0
	for _, o := range l.all {
		if o.gone >= view {
			most = max(most, o.most)
		}
	}
	return most
}

var began = time.Now()

// Now is the time by which listings and limits are compared.
func Now() int64 { return int64(time.Since(began)) + 1 }
