package main

import (
	"context"
	"math/rand/v2"
	"path"
	"strconv"
)

// seldomOther is one of how many uses is that of another worker's lock.
const seldomOther = 50

// mostlyOwn returns a lock that is another one at each use: mostly the next of the p.locks that belong to
// the worker, and by chance, about each fiftieth time, one of another worker's. newLock makes the lock at a
// path, when it is used first.
func mostlyOwn(p plan, worker int, newLock func(where string) (lock, error)) lock {
	made := map[int]lock{}
	next := rand.New(rand.NewPCG(0, uint64(worker)))
	var held lock
	uses := 0
	return lock{
		lock: func(ctx context.Context) error {
			i := worker*p.locks + uses%p.locks
			uses++
			if next.IntN(seldomOther) == 0 {
				i = (worker+1+next.IntN(p.workers-1))%p.workers*p.locks + next.IntN(p.locks)
			}
			l, ok := made[i]
			if !ok {
				var err error
				if l, err = newLock(path.Join(p.path, strconv.Itoa(i))); err != nil {
					return err
				}
				made[i] = l
			}
			held = l
			return l.lock(ctx)
		},
		unlock: func(ctx context.Context) error { return held.unlock(ctx) },
	}
}

// anyKey returns a lock that is at each use that of another of the p.locks keys, by chance. newLock makes one for each
// use.
func anyKey(p plan, worker int, newLock func(key string) (lock, error)) lock {
	next := rand.New(rand.NewPCG(0, uint64(worker)))
	var held lock
	return lock{
		lock: func(ctx context.Context) (err error) {
			if held, err = newLock(strconv.Itoa(next.IntN(p.locks))); err != nil {
				return err
			}
			return held.lock(ctx)
		},
		unlock: func(ctx context.Context) error { return held.unlock(ctx) },
	}
}
