package simulation

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

// idSource gives package uuid its random numbers. The uuid of an attempt is drawn by the goroutine
// that called Lock, or by one that acts for it. Each call of each worker has a series of its own.
// So when several workers wake up at one instant, their order does not matter.
type idSource struct{}

// series is that of one call. A worker that has gone from one queue to another may still lend its
// name to goroutines that entered the first queue for it and others.
type series struct {
	of   *worker
	call int // of that worker
	n    int // uuids drawn; guarded by the worker's mu
}

type seriesKey struct{}

// byGoroutine has the series that each goroutine draws from, by number.
var byGoroutine sync.Map

func (idSource) Read(b []byte) (int, error) {
	s, ok := byGoroutine.Load(goroutine())
	if !ok || len(b) != 16 {
		return rand.Read(b)
	}
	s.(*series).draw(b)
	return len(b), nil
}

// onBehalf is the trace hook that is called before a node is made, by the goroutine that will
// make it, with the context of the call.
func onBehalf(ctx context.Context) string {
	if s, ok := ctx.Value(seriesKey{}).(*series); ok {
		byGoroutine.Store(goroutine(), s)
	}
	return ""
}

// forget is called when no goroutine of a world draws any more.
func (w *world) forget() {
	byGoroutine.Range(func(id, s any) bool {
		if s.(*series).of.world == w {
			byGoroutine.Delete(id)
		}
		return true
	})
}

// goroutine returns the number of the calling goroutine, which the runtime shows only in stack
// traces.
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

// draw draws the next uuid, and names it.
func (s *series) draw(b []byte) {
	w := s.of
	w.mu.Lock()
	s.n++
	n := s.n
	w.mu.Unlock()
	binary.BigEndian.PutUint64(b, mix(w.world.seed, "uuid", w.id, s.call, n))
	binary.BigEndian.PutUint64(b[8:], mix(w.world.seed, "uuid2", w.id, s.call, n))
	u, err := uuid.NewRandomFromReader(bytes.NewReader(b)) // with version and variant
	if err != nil {
		panic(err)
	}
	w.world.trace.name(u.String(), fmt.Sprintf("w%d.%d.%d", w.id, s.call, n))
	w.world.checks.kept.drew(u.String(), w.m)
	w.world.checks.attempt(w, s.call)
}
