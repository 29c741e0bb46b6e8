package simulation

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
)

// restart is the sequence number from which on a directory is removed when it becomes empty.
const restart = 1 << 30

// wear sets the counters of some directories as if they had been in use for long: to just below the
// number from which counting starts again, or to just below its end.
func (w *world) wear() {
	w.sequences = make(map[string]int32)
	if !w.kind.revocable {
		return
	}
	for _, p := range w.plan.paths {
		dirs := []string{p}
		if w.kind.parts != nil {
			dirs = w.kind.dirs(p)
		}
		for _, dir := range dirs {
			h := mix(w.seed, "wear", dir)
			few := int32(h >> 8 % 16)
			switch h % 6 {
			case 0, 1:
				w.countFrom(dir, restart-few)
			case 2:
				w.countFrom(dir, math.MaxInt32-few)
			}
		}
	}
}

// restarts checks, at the end, that directories whose counters were used up can be used again,
// because they were empty and were removed. It takes the usual lock of each directory. A
// limit that was set keeps its directory, so restarts resets the limit first.
func (w *world) restarts() {
	for _, dir := range slices.Sorted(maps.Keys(w.sequences)) {
		mgr, err := w.members[0].current(context.Background())
		if err != nil {
			return
		}
		ctx, cancel := w.asProbe(w.members[0])
		err = w.useOnce(ctx, mgr, dir)
		for tries := 0; errors.Is(err, queue.ErrSequence) && tries < 10; tries++ {
			limited, resetErr := w.resetLimit(ctx, mgr, dir)
			if !limited || resetErr != nil && !errors.Is(resetErr, queue.ErrSequence) { // it lets the directory go
				err = cmp.Or(resetErr, err)
				break
			}
			err = w.useOnce(ctx, mgr, dir) // the first that fails once more removes the directory
			w.sleep(operatorSlot, 100*time.Millisecond)
		}
		cancel()
		if err != nil && w.members[0].maxNodes == 0 {
			w.checks.fail("%s, which counts from %d, cannot be used at the end: %v", dir, w.sequences[dir], err)
		}
	}
}

// useOnce takes and releases what is usual in a directory.
func (w *world) useOnce(ctx context.Context, mgr *session.Manager, dir string) error {
	l, err := w.usual(ctx, mgr, dir)
	if err != nil {
		return err
	}
	return l.Release(ctx)
}

// resetLimit gives the limit of a directory back. It reports false if workers set none there.
func (w *world) resetLimit(ctx context.Context, mgr *session.Manager, dir string) (bool, error) {
	if w.kind.limited == nil {
		return false, nil
	}
	for _, p := range w.plan.paths {
		n, ok := w.kind.limited(p)[dir]
		if !ok {
			continue
		}
		s, err := semaphore.New(mgr, dir, n)
		if err == nil {
			noted := w.limits.begin(dir, n)
			err = s.ResetLimit(ctx)
			if noted {
				w.limits.end(dir, err == nil)
			}
		}
		return true, err
	}
	return false, nil
}

// usual takes one lease of the type that is usual in a directory.
func (w *world) usual(ctx context.Context, mgr *session.Manager, dir string) (*queue.Lease, error) {
	mode := w.kind.modes[0]
	if w.kind.parts != nil {
		mode = map[string]string{"m": "plain", "r": "write", "s": "1"}[path.Base(dir)]
		dir = path.Dir(dir)
	}
	all, err := w.kind.open(mgr, dir)
	if err != nil {
		return nil, err
	}
	if plain := "plain " + mode; all[plain] != nil {
		mode = plain // it keeps no place
	}
	return all[mode].(leaser).Acquire(ctx)
}

// countFrom makes a directory and has its next contender get this number.
func (w *world) countFrom(dir string, next int32) {
	ctx, cancel := within(10 * time.Second)
	defer cancel()
	if w.operator.m == nil {
		return
	}
	s, err := w.operator.m.Session(ctx)
	if err == nil {
		_, err = s.Create(ctx, dir, nil, session.Container)
	}
	if errors.Is(err, zk.ErrNodeExists) {
		err = nil
	}
	w.sleep(operatorSlot, 200*time.Millisecond) // until all servers have it
	if err == nil {
		err = w.server.SetSequence(dir, next)
	}
	if err != nil {
		w.checks.fail("%s: %v", dir, err)
		return
	}
	w.sequences[dir] = next
	w.trace.add("world", "%s counts from %d", dir, next)
}
