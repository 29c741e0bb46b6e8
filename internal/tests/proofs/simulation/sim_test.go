package simulation

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// world is one run.
type world struct {
	seed   uint64
	kind   kind
	trace  *trace
	checks *checks
	server testserver.Switched
	plan   plan
	keeps  map[string]time.Duration // how long places are kept after a release, at most, by mode; nil: not at all
	limits *limits
	views  *views

	probes    int
	sequences map[string]int32 // from which directories count, that have been in use for long
	members   []*member
	workers   []*worker
	operator  *operator

	foreigners *foreigners // nil: none

	mu    sync.Mutex
	phase phase
	since time.Time // when the calm began
}

type phase int

const (
	chaos    phase = iota // faults strike
	settling              // healed, and what was broken mends
	slow                  // networks and disks are, and no session may be lost for it
	calm                  // all must be prompt
	ending                // workers stop when they have done what they do
)

// plan has the sizes that a seed chooses.
type plan struct {
	managers, workers int // workers per manager
	paths             []string
	timeouts          []time.Duration // of each manager's session
	servers           int
	tick              time.Duration
	knows             []knowledge // what each manager knows of the tick
	margin            time.Duration
	slowly, slowNet   bool // there is a phase in which all is slow: the network, or the disks
	chaos             time.Duration
	slow              int // of 1000 frames, how many are slow
	busy              time.Duration
}

func newPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := plan{
		managers: 2 + r.IntN(4),
		workers:  1 + r.IntN(3),
		paths:    []string{"/locks/a", "/locks/b"}[:1+r.IntN(2)],
		servers:  3,
		tick:     2 * time.Second, // ZooKeeper's own
		// Next to none. In virtual time no thread is late and all clocks agree, and a wide margin
		// would hide errors.
		margin: 60 * time.Millisecond,
		slowly: r.IntN(6) == 0, slowNet: r.IntN(2) == 0,
		chaos: 20*time.Second + time.Duration(r.IntN(20))*time.Second,
		slow:  []int{0, 5, 30}[r.IntN(3)],
		busy:  []time.Duration{time.Second, 3 * time.Second}[r.IntN(2)],
	}
	if r.IntN(8) == 0 { // a server alone, of any tick
		p.servers, p.tick = 1, time.Duration(1+r.IntN(8))*60*time.Millisecond
	}
	for i := range p.managers {
		// From two ticks up, no two the same, and all multiples of 60 ms: see slot.
		timeout := time.Duration([]int{67, 71, 73, 100, 167}[r.IntN(5)]+i) * 60 * time.Millisecond
		p.timeouts = append(p.timeouts, timeout)
		p.knows = append(p.knows, knowledge(r.IntN(3)))
	}
	return p
}

// knowledge is how a manager knows the servers' tick.
type knowledge int

const (
	told     knowledge = iota
	learning           // it asks
	ignorant           // it asks, and nobody answers
)

// delay is how long a frame takes.
func (w *world) delay(h uint64) time.Duration {
	switch in := w.in(); {
	case in >= calm:
		return between(h, 100*time.Microsecond, 3*time.Millisecond)
	case in == slow && w.plan.slowNet:
		return slowOneWay
	case in == slow:
		return between(h, 100*time.Microsecond, 3*time.Millisecond)
	}
	if int(h%1000) < w.plan.slow {
		return between(h>>10, 20*time.Millisecond, 900*time.Millisecond)
	}
	return between(h>>10, 100*time.Microsecond, 8*time.Millisecond)
}

func (w *world) in() phase {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.phase
}

// calmSince returns the time from which on all must be prompt, or zero.
func (w *world) calmSince() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.since
}

func (w *world) enter(p phase) {
	w.mu.Lock()
	w.phase = p
	if p == calm {
		w.since = time.Now().Add(time.Second) // what is slow on its way still holds up what follows
	}
	w.mu.Unlock()
	w.trace.add("world", "%s", [...]string{"chaos", "settling", "slow", "calm", "ending"}[p])
}

// sleep waits for about d, until a moment in the slot of the party.
func (w *world) sleep(party int, d time.Duration) { w.sleepAs(party, d) }

// sleepAs is sleep for one of several members of a party.
func (w *world) sleepAs(party int, d time.Duration, who ...any) {
	now := time.Now()
	place := mix(w.seed, append([]any{"sleep", party, now}, who...)...)
	time.Sleep(time.Until(slot(now.Add(d), party, place)))
}

// outcome is the result of a run.
type outcome struct {
	seed     uint64
	trace    []string
	failures []string
	grants   int
}

// runSeed does one run in a bubble of its own.
func runSeed(t *testing.T, seed uint64) (out *outcome) {
	w := &world{seed: seed, kind: kindOf(seed), plan: newPlan(seed)}
	w.keeps = w.kind.usages.drawKeeps(seed)
	if w.kind.habits != nil {
		w.plan.workers = max(2, w.plan.workers)
	}
	out = &outcome{seed: seed}
	defer func() {
		if w.trace != nil {
			out.trace = w.trace.all()
		}
		if r := recover(); r != nil {
			// A bubble panics if goroutines are left in it.
			out.failures = append(out.failures, fmt.Sprintf("the bubble: %v\n%s", r, bubbleStacks()))
		}
	}()
	defer w.forget()
	synctest.Test(t, func(*testing.T) { w.run(out) })
	return out
}

func kindOf(seed uint64) kind {
	for _, k := range kinds {
		if k.name == *kindFlag {
			return k
		}
	}
	return kinds[mix(seed, "kind")%uint64(len(kinds))]
}

// bound is how long after healing every worker must have been served or cancelled.
const bound = 3 * time.Minute

func (w *world) run(out *outcome) {
	w.trace = newTrace()
	w.checks, w.limits, w.views = newChecks(w), newLimits(w), newViews(w)
	asks, _ := w.sasl()
	server, err := zktest.New(append(asks, zktest.Servers(w.plan.servers), zktest.TickTime(w.plan.tick),
		zktest.ContainerCheck(time.Hour), zktest.MinSessionTimeout(2*w.plan.tick), zktest.MaxSessionTimeout(time.Hour))...)
	if err != nil {
		w.checks.fail("server: %v", err)
		return
	}
	w.server = testserver.Switch(server)
	w.trace.add("world", "seed %d: %s, %d managers with %d workers each, %d paths, %d servers, tick %v",
		w.seed, w.kind.name, w.plan.managers, w.plan.workers, len(w.plan.paths), w.plan.servers, w.plan.tick)
	w.operator = newOperator(w)
	w.wear()
	var people, members sync.WaitGroup
	stop := make(chan struct{})
	for i := range w.plan.managers {
		m := newMember(w, i)
		w.members = append(w.members, m)
		for range w.plan.workers {
			w.workers = append(w.workers, newWorker(w, m, len(w.workers)))
		}
	}
	if w.foreigners = newForeigners(w); w.foreigners != nil {
		members.Go(func() { w.foreigners.run(stop) })
	}
	for _, m := range w.members {
		members.Go(func() { m.run(stop) })
	}
	for _, k := range w.workers {
		people.Go(k.run)
	}
	newFaults(w).run(w.plan.chaos)
	w.enter(settling)
	longest := w.plan.timeouts[0]
	for _, d := range w.plan.timeouts {
		longest = max(longest, d)
	}
	w.sleep(faultSlot, 3*longest+10*time.Second)
	if w.plan.slowly {
		w.beSlow(longest)
	}
	w.enter(calm)
	members.Go(func() { w.checks.watchOver(stop) })
	if w.keeps != nil {
		members.Go(func() { w.checks.kept.watchOver(stop) })
	}
	if w.kind.election {
		members.Go(func() { w.views.watchOver(stop) })
	}
	w.operator.disturb(8 * time.Second)
	w.enter(ending)
	w.awaitEnd(&people)
	close(stop)
	members.Wait()
	w.checkEmpty()
	w.tearDown()
	out.failures, out.grants = w.checks.failed(), w.checks.grants
}

// Round trips of a second, or commits that take a second and a half: one of the two.
const (
	slowOneWay = 500 * time.Millisecond
	slowCommit = 1500 * time.Millisecond
)

// beSlow makes all slow for a minute, and lets it settle again.
func (w *world) beSlow(longest time.Duration) {
	w.enter(slow)
	if !w.plan.slowNet {
		w.server.SetCommitDelay(slowCommit)
	}
	w.sleep(faultSlot, time.Minute)
	w.server.SetCommitDelay(0)
	w.enter(settling)
	w.sleep(faultSlot, 2*longest)
}

// mayNotBeLost reports whether a session must survive the present slowness.
func (w *world) mayNotBeLost(m *member) bool {
	return w.in() == slow && m.timeout >= 10*time.Second && m.knows != ignorant && w.plan.servers > 1
}

// awaitEnd waits until every worker has been served or cancelled, or fails and cancels them.
func (w *world) awaitEnd(people *sync.WaitGroup) {
	over := make(chan struct{})
	go func() {
		people.Wait()
		close(over)
	}()
	limit := time.NewTimer(bound)
	defer limit.Stop()
	select {
	case <-over:
	case <-limit.C:
		for _, k := range w.workers {
			if what := k.doing(); what != "" {
				w.checks.fail("%s still does after %v without faults: %s", k.name, bound, what)
			}
		}
		for _, k := range w.workers {
			k.stop()
		}
		<-over
	}
}

// checkEmpty looks for nodes that should be gone, while the managers are still open. A removal
// in the background may take a moment.
func (w *world) checkEmpty() {
	w.sleep(faultSlot, 2*time.Second)
	for i := range w.plan.servers {
		if err := w.server.Failure(i); err != nil {
			w.checks.fail("%v", err)
		}
	}
	if w.keeps != nil { // places that are kept leave by themselves
		w.sleep(faultSlot, slices.Max(slices.Collect(maps.Values(w.keeps))))
	}
	w.probe()
	w.limits.forget()
	w.useAll()
	w.reap() // a watch on a directory's configuration goes with the directory
	w.operator.removeDirectories()
	w.sleep(faultSlot, time.Second)
	for _, name := range []string{"zk_ephemerals_count", "zk_watch_count"} {
		all, err := w.server.Metrics()
		if err != nil {
			w.checks.fail("metrics: %v", err)
		} else if all[name] != "0" {
			dump, _ := w.server.Word("dump")
			watches, _ := w.server.Word("wchp")
			w.checks.fail("%s is %s at the end\n%s%s", name, all[name],
				w.trace.readable(dump), w.trace.readable(watches))
		}
	}
}

// useAll makes directories that observers wait for, since they leave a watch on one that there is not.
func (w *world) useAll() {
	mgr, err := w.members[0].current(context.Background())
	if !w.kind.election || err != nil {
		return
	}
	ctx, cancel := w.asProbe(w.members[0])
	defer cancel()
	for _, p := range w.plan.paths {
		l, err := candidate{mgr, p}.Acquire(ctx)
		if err == nil {
			err = l.Release(ctx)
		}
		if err != nil {
			w.checks.fail("%s cannot be used at the end: %v", p, err)
		}
	}
}

// tearDown ends all. A goroutine that it leaves makes the bubble panic.
func (w *world) tearDown() {
	for _, m := range w.members {
		m.close()
	}
	w.operator.close()
	w.trace.add("world", "closed")
	if err := w.server.Close(); err != nil {
		w.checks.fail("close: %v", err)
	}
	for _, m := range w.members {
		m.end.cut()
	}
	time.Sleep(2 * time.Second) // what is on its way arrives nowhere
}

// sasl returns what the servers ask of their clients, and what these tell the servers: SASL, in some worlds.
func (w *world) sasl() ([]zktest.Option, []session.Option) {
	if w.keeps == nil || w.seed%4 < 3 {
		return nil, nil
	}
	return []zktest.Option{zktest.SASLUser("shop", "secret"), zktest.RequireSASL()},
		[]session.Option{session.WithSASL(session.DigestMD5("shop", "secret"))}
}

// every calls f now and then, until stop is closed.
func (w *world) every(who string, stop <-chan struct{}, f func()) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		w.sleepAs(faultSlot, 40*time.Millisecond, who)
		f()
	}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// within returns a context that ends after d.
func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// bubbleStacks returns the stacks of the goroutines that are left in a bubble.
func bubbleStacks() string {
	buf := make([]byte, 1<<20)
	var out []string
	for _, one := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if head, _, _ := strings.Cut(one, "\n"); strings.Contains(head, "synctest bubble") {
			out = append(out, one)
		}
	}
	return strings.Join(out, "\n\n")
}
