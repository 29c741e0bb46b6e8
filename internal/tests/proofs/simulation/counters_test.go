package simulation

import (
	"errors"
	"math"
	"time"

	"github.com/go-zookeeper/zk"

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
		for _, dir := range w.kind.dirs(p, false) {
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
