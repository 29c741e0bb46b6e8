package simulation

import (
	"context"
	"errors"
	"math"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
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

// useOnce takes and releases what is usual in a directory.
func (w *world) useOnce(ctx context.Context, mgr *session.Manager, dir string) error {
	l, err := w.usual(ctx, mgr, dir)
	if err != nil {
		return err
	}
	return l.Release(ctx)
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
