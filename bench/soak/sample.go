package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// sample is what this process and the server have in use at a time.
type sample struct {
	at         time.Duration // since the beginning
	goroutines int
	files      int    // open file descriptors of this process
	heap       uint64 // bytes; of a settled sample, after a garbage collection
	watches    int    // of the server, as are those below
	nodes      int
	ephemerals int
	sessions   int
	conns      int
}

// take samples everything but the heap.
func take(ctx context.Context, e *zktest.Ensemble, start time.Time) (sample, error) {
	s := sample{at: time.Since(start)}
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	m, err := e.Metrics(ctx, 0)
	if err != nil {
		return s, err
	}
	for name, to := range map[string]*int{
		"zk_watch_count": &s.watches, "zk_znode_count": &s.nodes, "zk_ephemerals_count": &s.ephemerals,
		"zk_global_sessions": &s.sessions, "zk_num_alive_connections": &s.conns,
	} {
		if *to, err = strconv.Atoi(m[name]); err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
	}
	fds, err := os.ReadDir("/dev/fd")
	s.files, s.goroutines = len(fds), runtime.NumGoroutine()
	return s, err
}

// heapInUse returns what the garbage collector leaves.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // for what the first has only finalized
	return heapNow()
}

func heapNow() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// above says in what a sample has more than another; nothing if in nothing.
func (s sample) above(base sample) (more []string) {
	for _, c := range []struct {
		what     string
		is, base int
	}{
		{"goroutines", s.goroutines, base.goroutines},
		{"open files", s.files, base.files},
		{"watches", s.watches, base.watches},
		{"nodes", s.nodes, base.nodes},
		{"ephemeral nodes", s.ephemerals, base.ephemerals},
		{"sessions", s.sessions, base.sessions},
		{"connections", s.conns, base.conns},
	} {
		if c.is > c.base {
			more = append(more, fmt.Sprintf("%s: %d, not %d", c.what, c.is, c.base))
		}
	}
	return more
}
