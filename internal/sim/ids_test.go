package sim

import (
	"bytes"
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
	w.ids++
	binary.BigEndian.PutUint64(b, mix(w.world.seed, "uuid", w.id, w.ids))
	binary.BigEndian.PutUint64(b[8:], mix(w.world.seed, "uuid2", w.id, w.ids))
	u, err := uuid.NewRandomFromReader(bytes.NewReader(b)) // with version and variant
	if err != nil {
		panic(err)
	}
	w.world.trace.name(u.String(), fmt.Sprintf("w%d.%d", w.id, w.ids))
	w.world.checks.attempt(w)
}
