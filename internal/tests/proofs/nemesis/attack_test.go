//go:build linux

package nemesis

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/peerlink"
)

// attacks are schedules that are drawn from a seed, of strikes at servers, at workers, and at what is between.
var attacks = []schedule{
	{group: "attack", name: "all", short: true, run: attackAll},
	{group: "soak", name: "all", short: true, run: soakAll},
}

func seedOf(t *trial) uint64 {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	t.Logf("for the same strikes: -schedule %s -seed %d -tick %v", t.group, seed, *tickFlag)
	return seed
}

func someLocks(t *trial) []subject {
	if *locksFlag == "" {
		return ours()
	}
	some, err := chosen(strings.Split(*locksFlag, ",")...)
	t.must(err)
	return some
}

// attackAll attacks three servers and five workers.
func attackAll(t *trial) {
	locks := someLocks(t)
	if *rivalFlag {
		locks, _ = chosen(rivalName)
	}
	seed := seedOf(t)
	links, linked := peerlink.New(t)
	s := newSite(t, locks, seed, paceOf(*tickFlag), nil, linked)
	s.links = links
	s.begin()
	began := time.Now()
	for plan := (&plan{random: rand.New(rand.NewPCG(seed, 0)), timeout: s.timeout, allowed: inAttack}); time.Since(began) < t.length(5*time.Second, time.Minute); {
		s.round(plan.round(3))
	}
	s.figure("seed %d, ticks of %v, %v", seed, s.tick, time.Since(began).Round(time.Second))
	s.finish()
}

// soakAll strikes at workers and their connections. After each round all workers rest, and then nothing more may be in
// use than at the beginning.
func soakAll(t *trial) {
	seed := seedOf(t)
	locks := slices.DeleteFunc(slices.Clone(someLocks(t)), func(s subject) bool { return s.name == jobName }) // its record stays
	s := newSite(t, locks, seed, paceOf(*tickFlag), nil)
	s.settles = true
	before := s.inUse()
	s.begin()
	began := time.Now()
	var heaps []int
	for plan := (&plan{random: rand.New(rand.NewPCG(seed, 0)), timeout: s.timeout, allowed: inSoak}); ; {
		s.round(plan.round(12))
		heaps = append(heaps, s.settle(before))
		if time.Since(began) > t.length(0, 10*time.Minute) || t.Failed() {
			break
		}
		s.tell("work")
	}
	half := len(heaps) / 2
	first, last := slices.Max(heaps[:half+1]), slices.Min(heaps[half:])
	if last > first+1<<20 {
		t.Errorf("the heap of a worker grows: %d bytes at most in the first half of the rounds, %d at least in the other", first, last)
	}
	s.tell("work")
	s.figure("seed %d, %d times nothing was left, in %v; heap %.2f and %.2f MiB", seed, len(heaps), time.Since(began).Round(time.Second),
		float64(first)/(1<<20), float64(last)/(1<<20))
	s.finish()
}

// inUse asks the servers what is in use, by its name. Of what adds up, it returns the sum. It returns nil if a server
// does not say.
func (s *site) inUse() map[string]int {
	u := make(map[string]int)
	for i := range s.Len() {
		m, err := s.Metrics(s.Context(), i)
		if err != nil {
			return nil
		}
		for metric, sum := range map[string]int{
			"zk_watch_count": 1, "zk_num_alive_connections": 1, // each server has its own
			"zk_znode_count": 0, "zk_ephemerals_count": 0, "zk_global_sessions": 0,
		} {
			n, err := strconv.Atoi(m[metric])
			if err != nil {
				return nil
			}
			u[metric] = max(u[metric], n+u[metric]*sum)
		}
	}
	return u
}

// settle has all workers rest, and waits until no more is in use than before they came. It judges what they have
// done, and returns the heap of the first.
func (s *site) settle(before map[string]int) (heap int) {
	s.Helper()
	if _, ok := s.rest(certainly, everybody...); !ok {
		s.Fatal("not everybody comes to rest")
	}
	s.useDirectories()
	allowed := maps.Clone(before)
	allowed["zk_global_sessions"] += workers
	allowed["zk_num_alive_connections"] += workers
	var more []string
	if !eventually(certainly, func() bool {
		more = nil
		used := s.inUse()
		for name, n := range allowed {
			if used == nil || used[name] > n {
				more = append(more, fmt.Sprintf("%s: %d, not %d", name, used[name], n))
			}
		}
		all, ok := s.rest(certainly, everybody...)
		if !ok {
			s.Fatal("not everybody says what it has in use")
		}
		for i, c := range all {
			if c.Goroutines > s.base[i].Goroutines || c.Files > s.base[i].Files {
				more = append(more, fmt.Sprintf("worker %d: %+v, not %+v", i, c, s.base[i]))
			}
		}
		heap = all[0].Heap
		return len(more) == 0
	}) {
		nodes, _ := s.below(lockDir)
		s.Errorf("when all rest, more is in use than before: %q; nodes: %q", more, nodes)
	}
	s.judge()
	s.desk.do(func() { s.desk.book = nil }) // the workers are at rest
	return heap
}

// useDirectories creates a node in each directory and deletes it: servers do not remove a container in which nothing
// has ever been, such as that of a key whose contender gave up in time.
func (s *site) useDirectories() {
	s.Helper()
	all, err := s.below(lockDir)
	s.must(err)
	for _, dir := range all {
		node := path.Join(dir, "used")
		if _, err := s.admin.Create(node, nil, 0, zk.WorldACL(zk.PermAll)); err == nil {
			s.must(s.admin.Delete(node, -1))
		}
	}
}
