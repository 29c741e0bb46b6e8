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
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/peerlink"
	"github.com/turnstile-go/turnstile/zktest"
)

// attacks are schedules that are drawn from a seed, of strikes at servers, at workers, and at what is between.
var attacks = []schedule{
	{group: "attack", name: "all", short: true, run: attackAll},
	{group: "soak", name: "all", short: true, run: soakAll},
}

// strike is one fault of a round. It begins at At.
type strike struct {
	Kind      string
	Worker    int // anyone: the worker that holds the lock at that moment
	Server    int
	Peer      int // another server
	Direction zktest.Direction
	Op        zktest.Op
	At, For   time.Duration
}

const anyone = -1

// String describes the fields that the kind uses; see kinds.
func (k strike) String() string {
	worker := fmt.Sprint("worker ", k.Worker)
	if k.Worker == anyone {
		worker = "the holder"
	}
	return fmt.Sprintf("%s at %v for %v (%s, server %d, %d, %v, %v)", k.Kind,
		k.At.Round(time.Millisecond), k.For.Round(time.Millisecond), worker, k.Server, k.Peer, k.Direction, k.Op)
}

// kinds are the kinds of strike. Each function begins a strike and returns the function that ends it. It
// does nothing to a server or worker that another strike has already struck. A killed server is
// started again, and a killed worker gets another process.
var kinds = map[string]func(*site, strike) (end func() error){
	"kill server":          func(s *site, k strike) func() error { return s.killServer(k.Server) },
	"pause server":         func(s *site, k strike) func() error { return s.pauseServer(k.Server) },
	"kill leader":          func(s *site, k strike) func() error { return s.killServer(s.leader(k)) },
	"pause leader":         func(s *site, k strike) func() error { return s.pauseServer(s.leader(k)) },
	"cut leader off":       func(s *site, k strike) func() error { return s.isolate(s.leader(k)) },
	"cut server off":       func(s *site, k strike) func() error { return s.isolate(k.Server) },
	"cut servers apart":    func(s *site, k strike) func() error { return s.cutServers(k.Server, k.Peer) },
	"corner holder":        func(s *site, k strike) func() error { return s.corner(s.holder(), k) },
	"kill worker":          func(s *site, k strike) func() error { return s.killWorker(s.worker(k)) },
	"end worker":           func(s *site, k strike) func() error { return s.endWorker(s.worker(k)) },
	"pause worker":         func(s *site, k strike) func() error { return s.pauseWorker(s.worker(k)) },
	"pause holder":         func(s *site, k strike) func() error { return s.pauseWorker(s.holder()) },
	"cut holder off":       func(s *site, k strike) func() error { return s.cutWorker(s.holder(), k.Direction, 0, 1, 2) },
	"cut worker off":       func(s *site, k strike) func() error { return s.cutWorker(s.worker(k), k.Direction, 0, 1, 2) },
	"cut worker briefly":   func(s *site, k strike) func() error { return s.cutWorker(s.worker(k), k.Direction, 0, 1, 2) },
	"cut one way off":      func(s *site, k strike) func() error { return s.cutWorker(s.worker(k), k.Direction, k.Server) },
	"cut two ways off":     func(s *site, k strike) func() error { return s.cutWorker(s.worker(k), k.Direction, k.Server, k.Peer) },
	"refuse worker":        func(s *site, k strike) func() error { return s.refuse(s.worker(k), k.Server, k.Peer) },
	"slow worker":          func(s *site, k strike) func() error { return s.slowWorker(s.worker(k)) },
	"disconnect worker":    func(s *site, k strike) func() error { return s.disconnect(s.worker(k)) },
	"disconnect everyone":  func(s *site, k strike) func() error { return s.disconnect(0, 1, 2, 3, 4) },
	"cut before a request": func(s *site, k strike) func() error { return s.arm(s.worker(k), (*zktest.Proxy).CutBefore, k.Op) },
	"cut after a commit":   func(s *site, k strike) func() error { return s.arm(s.worker(k), (*zktest.Proxy).CutAfterCommit, k.Op) },
	"hold a request":       func(s *site, k strike) func() error { return s.arm(s.worker(k), (*zktest.Proxy).HoldRequest, k.Op) },
	"hold a reply":         func(s *site, k strike) func() error { return s.arm(s.worker(k), (*zktest.Proxy).HoldReply, k.Op) },
}

// ops are the kinds of requests and events at which a fault can strike.
var ops = []zktest.Op{
	zktest.OpCreate, zktest.OpCreateContainer, zktest.OpDelete, zktest.OpGetData, zktest.OpSetWatches, zktest.OpGetChildren2,
	zktest.OpSync, zktest.OpPing, zktest.OpMulti, zktest.OpConnect, zktest.OpSASL, zktest.OpNotification,
}

// inAttack reports whether a kind of strike is one of attack. Those that are not cost no session and hardly a lock.
func inAttack(kind string) bool {
	return !strings.Contains(kind, " a ") && !strings.HasPrefix(kind, "slow")
}

// inSoak reports whether a kind of strike is one of soak: at no server.
func inSoak(kind string) bool {
	return !strings.Contains(kind, "server") && !strings.Contains(kind, "leader") && kind != "corner holder"
}

// plan draws one round after another, without end, the same from the same seed.
type plan struct {
	random  *rand.Rand
	timeout time.Duration // of sessions
	allowed func(kind string) bool
	unused  []string // each kind comes once before any comes again
}

func newPlan(seed uint64, timeout time.Duration, allowed func(kind string) bool) *plan {
	return &plan{random: rand.New(rand.NewPCG(seed, 0)), timeout: timeout, allowed: allowed}
}

// round has the faults before all is healed.
func (p *plan) round(most int) []strike {
	r := make([]strike, 1+p.random.IntN(most))
	for i := range r {
		r[i] = p.strike()
	}
	return r
}

func (p *plan) strike() strike {
	server := p.random.IntN(voters)
	worker := p.random.IntN(workers)
	if p.random.IntN(2) == 0 {
		worker = anyone
	}
	kind := p.kind()
	return strike{
		Kind:      kind,
		Worker:    worker,
		Server:    server,
		Peer:      (server + 1 + p.random.IntN(voters-1)) % voters,
		Direction: []zktest.Direction{zktest.ToServer, zktest.ToClient, zktest.Both}[p.random.IntN(3)],
		Op:        ops[p.random.IntN(len(ops))],
		At:        p.upTo(p.timeout),
		For:       p.duration(kind),
	}
}

func (p *plan) kind() string {
	if len(p.unused) == 0 {
		p.unused = slices.DeleteFunc(slices.Sorted(maps.Keys(kinds)), func(kind string) bool { return !p.allowed(kind) })
		p.random.Shuffle(len(p.unused), func(i, j int) { p.unused[i], p.unused[j] = p.unused[j], p.unused[i] })
	}
	k := p.unused[0]
	p.unused = p.unused[1:]
	return k
}

// duration draws a duration within a session's timeout, or beyond it. A fault that is over at once
// has none. A brief one is far below the timeout, so that the session is kept.
func (p *plan) duration(kind string) time.Duration {
	switch {
	case strings.HasPrefix(kind, "disconnect"):
		return 0
	case strings.HasSuffix(kind, "briefly"), strings.Contains(kind, " a "):
		return p.timeout/8 + p.upTo(p.timeout/2)
	case p.random.IntN(3) == 0:
		return p.timeout/10 + p.upTo(p.timeout)
	}
	return p.timeout*11/10 + p.upTo(p.timeout)
}

func (p *plan) upTo(d time.Duration) time.Duration { return time.Duration(p.random.Int64N(int64(d))) }

func TestPlanFollowsSeed(t *testing.T) {
	draw := func(seed uint64) (all [][]strike) {
		p := newPlan(seed, time.Second, func(string) bool { return true })
		for range 50 {
			all = append(all, p.round(3))
		}
		return all
	}
	if diff := cmp.Diff(draw(7), draw(7)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(draw(7), draw(8)) {
		t.Error("two seeds, one plan")
	}
	drawn := make(map[string]bool)
	for _, r := range draw(7) {
		for _, k := range r {
			drawn[k.Kind] = true
		}
	}
	if len(drawn) != len(kinds) {
		t.Errorf("%d kinds of %d in 50 rounds", len(drawn), len(kinds))
	}
}

func nothing() error { return nil }

// waits says how long it took until everybody was served after healing.
func waits(o outcome) string {
	if len(o.served) == 0 {
		return fmt.Sprintf("served after healing: never; %d stalls; %d holds in a place that had been held before", o.stalls, o.again)
	}
	sorted := slices.Sorted(slices.Values(o.served))
	return fmt.Sprintf("served after healing: %.2f s (median), %.2f s at most; %d stalls; %d holds in a place that had been held before",
		sorted[len(sorted)/2].Seconds(), sorted[len(sorted)-1].Seconds(), o.stalls, o.again)
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
		return subjects
	}
	some, err := chosen(strings.Split(*locksFlag, ","))
	t.must(err)
	return some
}

// attackAll attacks three servers and five workers.
func attackAll(t *trial) {
	c := turnstile(someLocks(t))
	if *rivalFlag {
		c = zkRival
	}
	seed := seedOf(t)
	links, linked := peerlink.New(t)
	s := newSite(t, c, seed, paceOf(*tickFlag), nil, linked)
	s.links = links
	s.begin()
	began := time.Now()
	for plan := newPlan(seed, s.timeout, inAttack); time.Since(began) < t.length(5*time.Second, time.Minute); {
		s.round(plan.round(3))
	}
	s.finish(true, func(o outcome) string {
		return fmt.Sprintf("seed %d, ticks of %v, %v; %s; %d orphans", seed, s.tick, time.Since(began).Round(time.Second), waits(o), o.orphans)
	})
}

// soakAll strikes at workers and their connections. After each round all workers rest, and then nothing more may be in
// use than at the beginning.
func soakAll(t *trial) {
	seed := seedOf(t)
	locks := slices.DeleteFunc(slices.Clone(someLocks(t)), func(s subject) bool { return s.name == jobName }) // its record stays
	s := newSite(t, turnstile(locks), seed, paceOf(*tickFlag), nil)
	s.settles = true
	before := s.inUse()
	s.begin()
	began := time.Now()
	var heaps []int
	for plan := newPlan(seed, s.timeout, inSoak); ; {
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
	s.finish(false, func(o outcome) string {
		return fmt.Sprintf("seed %d, %d times nothing was left, in %v; heap %.2f and %.2f MiB; %s",
			seed, len(heaps), time.Since(began).Round(time.Second), float64(first)/(1<<20), float64(last)/(1<<20), waits(o))
	})
}

// used is what the servers and the workers have in use, by its name.
type used map[string]int

// above names the things of which more are in use than before, or are not known.
func (u used) above(before used) (more []string) {
	for name, n := range before {
		if u[name] > n || u == nil {
			more = append(more, fmt.Sprintf("%s: %d, not %d", name, u[name], n))
		}
	}
	return more
}

// inUse asks the servers. Of those that add up, it returns the sum. The sessions of the workers count apart.
func (s *site) inUse() used {
	u := make(used)
	for i := range s.ensemble.Len() {
		m, err := s.ensemble.Metrics(s.Context(), i)
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
func (s *site) settle(before used) (heap int) {
	s.Helper()
	for i, waiting := range s.rest(certainly) {
		if waiting > 0 {
			s.Errorf("%d contenders for %s do not come to rest", waiting, s.subjects[i].name)
		}
	}
	s.useDirectories()
	allowed := maps.Clone(before)
	allowed["zk_global_sessions"] += workers
	allowed["zk_num_alive_connections"] += workers
	var more []string
	if !eventually(certainly, func() bool {
		more = s.inUse().above(allowed)
		for i := range workers {
			c, base := s.count(i), s.base[s.crew.lifeOf(i)]
			if c.Goroutines > base.Goroutines || c.Files > base.Files {
				more = append(more, fmt.Sprintf("worker %d: %+v, not %+v", i, c, base))
			}
			if i == 0 {
				heap = c.Heap
			}
		}
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
