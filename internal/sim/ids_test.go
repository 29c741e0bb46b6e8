package sim

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"sync"

	"github.com/google/uuid"
)

// idSource is where package uuid gets its random numbers. The uuid of an attempt is drawn
// by the goroutine that called Lock: each worker has a series of its own, so that of several
// who wake up at one instant it does not matter who is first.
type idSource struct{}

// byGoroutine has the worker that each goroutine is, by number.
var byGoroutine sync.Map

func (idSource) Read(b []byte) (int, error) {
	w, ok := byGoroutine.Load(goroutine())
	if !ok || len(b) != 16 {
		return rand.Read(b)
	}
	w.(*worker).fillID(b)
	return len(b), nil
}

// onBehalf is the trace hook that is called before a node is made, by the goroutine that will
// make it: where that is not a worker, it acts for the one whose context it has.
func onBehalf(ctx context.Context) string {
	if k, ok := ctx.Value(workerKey{}).(*worker); ok {
		byGoroutine.Store(goroutine(), k)
	}
	return ""
}

// forget is called when nobody of a world draws any more.
func (w *world) forget() {
	byGoroutine.Range(func(id, k any) bool {
		if k.(*worker).world == w {
			byGoroutine.Delete(id)
		}
		return true
	})
}

// goroutine returns the number of the one that calls. The runtime tells it in stack traces
// alone.
func goroutine() uint64 {
	var b [64]byte
	head := b[:runtime.Stack(b[:], false)]
	head = bytes.TrimPrefix(head, []byte("goroutine "))
	n, err := strconv.ParseUint(string(head[:bytes.IndexByte(head, ' ')]), 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// fillID draws the worker's next uuid, and names it.
func (w *worker) fillID(b []byte) {
	w.mu.Lock()
	w.ids++
	n := w.ids
	w.mu.Unlock()
	binary.BigEndian.PutUint64(b, mix(w.world.seed, "uuid", w.id, n))
	binary.BigEndian.PutUint64(b[8:], mix(w.world.seed, "uuid2", w.id, n))
	u, err := uuid.NewRandomFromReader(bytes.NewReader(b)) // with version and variant
	if err != nil {
		panic(err)
	}
	w.world.trace.name(u.String(), fmt.Sprintf("w%d.%d", w.id, n))
	w.world.checks.attempt(w)
}
