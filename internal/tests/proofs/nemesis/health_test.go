//go:build linux

package nemesis

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// modesOf asks all servers at once for their modes: "leader", "follower", "observer", "read-only", or "" for one that does
// not serve.
func modesOf(ctx context.Context, e *zktest.Ensemble, within time.Duration) []string {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	modes := make([]string, e.Len())
	var all sync.WaitGroup
	for i := range modes {
		all.Go(func() {
			text, _ := e.Word(ctx, i, "srvr")
			_, after, _ := strings.Cut(text, "Mode: ")
			modes[i], _, _ = strings.Cut(after, "\n")
		})
	}
	all.Wait()
	return modes
}

// outages asks the servers again and again until ctx ends. It returns the longest time between two moments at which all
// clients could work: the servers could agree to a write, and the one that some clients need served. late is by how much
// this process ran late at most.
func outages(ctx context.Context, e *zktest.Ensemble) (longest, late time.Duration) {
	const every, within = 50 * time.Millisecond, 250 * time.Millisecond
	for well := time.Now(); ; {
		asked := time.Now()
		modes := modesOf(ctx, e, within)
		serving := func(modes []string) (n int) {
			for _, mode := range modes {
				if mode != "" && mode != "read-only" {
					n++
				}
			}
			return n
		}
		// The first servers have votes.
		if serving(modes[:voters]) > voters/2 && slices.Contains(modes, "leader") && serving(modes[voters:]) == len(modes)-voters {
			longest, well = max(longest, asked.Sub(well)), asked
		}
		slept := time.Now()
		if !pause(ctx, every) {
			return longest, late
		}
		late = max(late, time.Since(slept)-every)
	}
}
