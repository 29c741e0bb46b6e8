package main

import (
	"math"
	"slices"
	"sync"
	"time"
)

// limits are those of one semaphore, and when each may have been in force. There is one server,
// so that a limit is in force for all as soon as Resize has returned, but for what is on its way
// to a client by then: a contender goes by a limit that was in force at some time since it has
// asked for the listing that lets it in.
type limits struct {
	mu  sync.Mutex
	all []*limit
}

// limit is what Resize was asked for, or what the semaphore has at first.
type limit struct {
	most   int
	called int64
	ended  int64 // when Resize returned
	known  bool  // Resize has returned that it is so
	gone   int64 // since then another has been in force for certain
}

// forgetAfter is how long a limit is remembered that is in force no more: longer than any wait.
const forgetAfter = int64(time.Minute)

func newLimits(most int) *limits {
	return &limits{all: []*limit{{most: most, known: true, gone: math.MaxInt64}}}
}

// change is told of a Resize before it is called. The function that it returns is told how that
// has ended: of one that has failed, it is not known whether it has been carried out, or will
// be. It will not when another has returned that was called later: a limit is only set if
// nobody has set another since the one before it was read.
func (l *limits) change(most int) (ended func(error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := clock()
	one := &limit{most: most, called: now, ended: math.MaxInt64, gone: math.MaxInt64}
	l.all = append(slices.DeleteFunc(l.all, func(o *limit) bool { return o.gone < now-forgetAfter }), one)
	return func(err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		one.ended, one.known = clock(), err == nil
		for _, o := range l.all {
			if one.known && o.ended < one.called {
				o.gone = min(o.gone, one.ended)
			}
		}
	}
}

// since returns the highest limit that may have been in force at some time since another.
func (l *limits) since(view int64) int {
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

// clock is the time by which listings and limits are compared.
func clock() int64 { return int64(time.Since(began)) + 1 }
