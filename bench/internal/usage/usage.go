// Package usage measures the resources that a process and its ZooKeeper server have in use.
package usage

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/turnstile-go/turnstile/zktest"
)

// Usage has the resources in use at one time.
type Usage struct {
	Goroutines int
	Files      int    // open file descriptors of this process
	Heap       uint64 // bytes; nothing unless it was measured
	Stacks     uint64

	Watches    int // of the server, as are those below
	Nodes      int
	Ephemerals int
	Sessions   int
	Conns      int
	Packets    int // requests received since it was started, pings included
}

// Take returns the resources in use, apart from memory. It fails if ctx ends before the server has
// answered.
func Take(ctx context.Context, e *zktest.Ensemble) (Usage, error) {
	var u Usage
	m, err := e.Metrics(ctx, 0)
	if err != nil {
		return u, err
	}
	for name, to := range map[string]*int{
		"zk_watch_count": &u.Watches, "zk_znode_count": &u.Nodes, "zk_ephemerals_count": &u.Ephemerals,
		"zk_global_sessions": &u.Sessions, "zk_num_alive_connections": &u.Conns, "zk_packets_received": &u.Packets,
	} {
		if *to, err = strconv.Atoi(m[name]); err != nil {
			return u, fmt.Errorf("%s: %w", name, err)
		}
	}
	fds, err := os.ReadDir("/dev/fd")
	u.Files, u.Goroutines = len(fds), runtime.NumGoroutine()
	return u, err
}

// Memory adds the memory in use as it is now.
func (u *Usage) Memory() {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	u.Heap, u.Stacks = s.HeapAlloc, s.StackInuse
}

// MemoryLeft adds what memory the garbage collector leaves.
func (u *Usage) MemoryLeft() {
	runtime.GC()
	runtime.GC() // for what the first has only finalized; it shrinks stacks, too
	u.Memory()
}

// Above names the resources of which more are in use than in base; "" if there are none. Memory and
// packets do not count.
func (u Usage) Above(base Usage) string {
	var more []string
	for _, c := range []struct {
		what     string
		is, base int
	}{
		{"goroutines", u.Goroutines, base.Goroutines},
		{"open files", u.Files, base.Files},
		{"watches", u.Watches, base.Watches},
		{"nodes", u.Nodes, base.Nodes},
		{"ephemeral nodes", u.Ephemerals, base.Ephemerals},
		{"sessions", u.Sessions, base.Sessions},
		{"connections", u.Conns, base.Conns},
	} {
		if c.is > c.base {
			more = append(more, fmt.Sprintf("%s: %d, not %d", c.what, c.is, c.base))
		}
	}
	return strings.Join(more, "; ")
}
