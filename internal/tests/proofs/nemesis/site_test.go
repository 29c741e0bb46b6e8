//go:build linux

package nemesis

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/peerlink"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/saslserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	voters  = 3
	workers = 5
	lockDir = "/nemesis"  // what all locks are below
	healing = time.Minute // how long all servers may take to serve again

	// certainly bounds waits for what our locks must do, on any machine.
	certainly = time.Minute
	// perhaps bounds waits for what a rival may do or not.
	perhaps = 10 * time.Second
)

// pace is how fast the servers are.
type pace struct {
	tick    time.Duration // of the servers: followers are given up after five
	timeout time.Duration // of sessions
}

func paceOf(tick time.Duration) pace { return pace{tick, max(2*time.Second, 5*tick)} }

// stall is how long after healing a worker may wait to be served. The attack goes on after that.
func (p pace) stall() time.Duration { return 5 * p.timeout }

// contestant is a library whose locks are attacked, all of them at once.
type contestant struct {
	name     string // of the clients
	subjects []subject
	ours     bool // violations fail the test; those of the rival are counted
}

// zkRival is go-zookeeper's Lock, in which the checker has to find violations.
var zkRival = contestant{"zk.Lock", []subject{{name: "lock", hands: 1}}, false}

func turnstile(some []subject) contestant { return contestant{"turnstile", some, true} }

// site is where one contestant works: an ensemble, and a process for each worker. One goroutine uses it.
type site struct {
	pace
	*trial
	contestant
	ensemble *zktest.Ensemble
	links    *peerlink.Links // nil: the servers speak to each other directly
	proxies  [workers][]*zktest.Proxy
	desk     *desk
	crew     *crew
	admin    *zk.Conn
	results  []outcome // of the subjects
	settles  bool      // after each round the workers rest, and what they have in use is counted
	base     map[lifeID]counts
	faults   int
	gone     []int // servers that stay away
}

// outcome is what is known of a lock.
type outcome struct {
	verdict
	holds, stalls, orphans int
	served                 []time.Duration // after healing, until everybody was
}

// newSite starts the servers and the workers. reach says to which servers a worker connects; nil: to all.
func newSite(t *trial, c contestant, seed uint64, p pace, reach func(worker int) []int, opts ...zktest.RealOption) *site {
	t.Helper()
	s := &site{trial: t, contestant: c, pace: p, results: make([]outcome, len(c.subjects)), base: make(map[lifeID]counts)}
	knows, err := saslserver.Options(t.TempDir(), map[string]string{user: password})
	t.must(err)
	s.ensemble = zktest.StartReal(t, append(append(knows, zktest.Servers(voters), zktest.TickTime(p.tick), zktest.ContainerCheck(2*p.tick)), opts...)...)
	settings := settings{Seed: seed, Timeout: p.timeout}
	for _, one := range c.subjects {
		settings.Paths = append(settings.Paths, path.Join(lockDir, one.name))
	}
	s.desk = newDesk(c.subjects)
	s.admin, _, err = zk.Connect(strings.Split(s.ensemble.ConnectString(), ","), healing, zk.WithLogger(silent{}))
	t.must(err)
	t.Cleanup(s.admin.Close)
	t.must(s.closeLocks())
	s.crew = &crew{contestant: c.name, listen: s.desk.listen, settings: settings, dir: t.TempDir()}
	t.Cleanup(s.crew.killAll)
	for i := range workers {
		var addrs []string
		for j := range s.ensemble.Len() {
			proxy := zktest.StartProxy(t, s.ensemble.Addr(j))
			s.proxies[i] = append(s.proxies[i], proxy)
			if reach == nil || slices.Contains(reach(i), j) {
				addrs = append(addrs, proxy.Addr())
			}
		}
		s.crew.servers[i] = strings.Join(addrs, ",")
	}
	return s
}

// begin has the workers work.
func (s *site) begin() {
	s.Helper()
	s.heal()
	if took := s.served(0, certainly); slices.Contains(took, -1) {
		s.tellWaiting(0)
		s.Fatalf("not everybody is served before anything has gone wrong: %v", took)
	}
}

// closeLocks makes the directories that are not open to all.
func (s *site) closeLocks() error {
	errs := []error{s.admin.AddAuth("digest", []byte(user+":"+password))}
	for _, g := range s.subjects {
		if g.acl == nil {
			continue
		}
		if _, err := s.admin.Create(lockDir, nil, 0, zk.WorldACL(zk.PermAll)); !errors.Is(err, zk.ErrNodeExists) {
			errs = append(errs, err)
		}
		_, err := s.admin.Create(path.Join(lockDir, g.name), nil, 0, g.acl)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// note logs an error of a call that should have worked.
func (s *site) note(err error) {
	if err != nil {
		s.Logf("nemesis: %v", err)
	}
}

// heal ends all faults, and returns when all servers serve, and all workers work.
func (s *site) heal() {
	s.Helper()
	s.links.Heal()
	s.servers(func(i int) { _ = s.raise(i) }) // which is running, as a rule
	for i := range workers {
		for _, p := range s.proxies[i] {
			p.Heal()
			p.ResetRequests() // it keeps so many
		}
		if s.crew.now[i] != nil {
			s.crew.resume(i)
		}
	}
	if err := s.ready(healing); err != nil {
		s.Logf("%v: all servers are started again", err)
		s.servers(func(i int) {
			s.note(s.ensemble.Kill(i))
			s.note(s.ensemble.Launch(i))
		})
		s.must(s.ready(3 * healing))
	}
	for i := range workers {
		s.must(s.start(i))
	}
}

// servers calls f for each server that does not stay away.
func (s *site) servers(f func(i int)) {
	for i := range s.ensemble.Len() {
		if !slices.Contains(s.gone, i) {
			f(i)
		}
	}
}

// start gives a worker a process if it has none. What the process has in use is counted before it works.
func (s *site) start(i int) error {
	if s.crew.alive(i) {
		return nil
	}
	s.desk.do(func() {
		for n := range s.desk.seats {
			s.desk.seats[n].rested = s.desk.seats[n].rested && s.desk.seats[n].worker != i
		}
	})
	if err := s.crew.start(i); err != nil {
		return err
	}
	if s.settles {
		rested := func() bool {
			return len(s.desk.seatsWhere(func(e seat) bool { return e.worker == i && !e.rested })) == 0
		}
		if !eventually(certainly, rested) {
			return fmt.Errorf("worker %d does not begin; its log:\n%s", i, s.crew.now[i].log(4<<10))
		}
		s.base[s.crew.lifeOf(i)] = s.count(i)
	}
	s.crew.tell(i, "work")
	return nil
}

// tell gives all workers an order.
func (s *site) tell(order string) {
	for i := range workers {
		s.crew.tell(i, order)
	}
}

// count asks the process of a worker what it has in use.
func (s *site) count(i int) (c counts) {
	s.Helper()
	id := s.crew.lifeOf(i)
	s.desk.do(func() { delete(s.desk.counts, id) })
	s.crew.tell(i, "count")
	if !eventually(certainly, func() (ok bool) {
		s.desk.do(func() { c, ok = s.desk.counts[id] })
		return ok
	}) {
		s.Fatalf("worker %d does not say what it has in use", i)
	}
	return c
}

// ready waits until all servers serve, and one leads the others: a leader that was stopped
// says that it leads for a while after it has been deposed.
func (s *site) ready(within time.Duration) error {
	ctx, cancel := context.WithTimeout(s.Context(), within)
	defer cancel()
	if err := s.ensemble.WaitReady(ctx); err != nil {
		return err
	}
	if !eventually(within, func() bool { return s.synced(ctx) == nil }) {
		return errors.Join(errors.New("the servers do not agree on a leader"), s.synced(ctx))
	}
	return nil
}

// synced returns an error unless the leader's followers and observers are all servers that run.
func (s *site) synced(ctx context.Context) error {
	leader, err := s.ensemble.Leader(ctx)
	if err != nil {
		return err
	}
	led, running := 0, 0
	for i := range s.ensemble.Len() {
		m, err := s.ensemble.Metrics(ctx, i)
		if err != nil {
			continue
		}
		running++
		if i == leader {
			followers, _ := strconv.Atoi(m["zk_synced_followers"])
			observers, _ := strconv.Atoi(m["zk_synced_observers"])
			led = followers + observers
		} else if m["zk_server_state"] == "leader" {
			return fmt.Errorf("servers %d and %d both lead", leader, i)
		}
	}
	if led != running-1 {
		return fmt.Errorf("the leader has %d others, and %d run", led, running-1)
	}
	return nil
}

// served waits until all contenders have had their locks since a time. It returns, in the order
// of the subjects, how long the last of each waited, and -1 if within did not suffice.
func (s *site) served(from int64, within time.Duration) []time.Duration {
	took := make([]time.Duration, len(s.subjects))
	eventually(within, func() bool {
		for i, last := range s.desk.servedSince(from) {
			took[i] = time.Duration(last - from)
			if last < 0 {
				took[i] = -1
			}
		}
		return !slices.Contains(took, -1)
	})
	return took
}

// tellWaiting logs the output of the workers that had to wait until a time, or longer.
func (s *site) tellWaiting(until int64) {
	s.Helper()
	names := make(map[int][]string)
	for _, e := range s.desk.seatsWhere(func(e seat) bool { return e.served <= until }) {
		names[e.worker] = append(names[e.worker], s.subjects[e.target].name)
	}
	for i, late := range names {
		s.Logf("worker %d waited for long for %v; the end of its log:\n%s", i, slices.Compact(late), s.crew.now[i].log(4<<10))
	}
}

// rest has all workers come to rest, and returns how many contenders of each subject do not
// within a time: those that wait for a lock and cannot be told otherwise.
func (s *site) rest(within time.Duration) (waiting []int) {
	s.desk.do(func() {
		for n := range s.desk.seats {
			s.desk.seats[n].rested = false
		}
	})
	s.tell("rest")
	eventually(within, func() bool {
		waiting = s.desk.restless()
		return slices.Max(waiting) == 0
	})
	return waiting
}

// left waits until there are no more nodes than most under a lock, and returns how many more
// there are if within does not suffice.
func (s *site) left(g subject, most int, within time.Duration) (more int) {
	s.Helper()
	var err error
	eventually(within, func() bool {
		var all []string
		all, err = s.below(path.Join(lockDir, g.name))
		more = -most
		for _, node := range all {
			if _, contends := queue.ParseNode(path.Base(node)); contends {
				more++
			}
		}
		return err == nil && more <= 0
	})
	s.must(err)
	return max(0, more)
}

// below returns all nodes below a directory.
func (s *site) below(dir string) (all []string, err error) {
	names, _, err := s.admin.Children(dir)
	if errors.Is(err, zk.ErrNoNode) {
		err = nil
	}
	for _, name := range names {
		more, errMore := s.below(path.Join(dir, name))
		all, err = append(append(all, path.Join(dir, name)), more...), errors.Join(err, errMore)
	}
	return all, err
}

// events returns what has been written down until now.
func (s *site) events() (all []event) {
	s.desk.do(func() { all = slices.Clone(s.desk.book) })
	return all
}

// judge checks it.
func (s *site) judge() {
	s.Helper()
	deaths, events := s.crew.deaths(), s.events()
	for i, g := range s.subjects {
		mine := slices.DeleteFunc(slices.Clone(events), func(e event) bool {
			return e.Turn == 0 || e.Lock != g.name && e.Lock != ""
		})
		o := &s.results[i]
		o.add(judge(g.rule, mine, deaths))
		for _, e := range mine {
			if e.What == eventGot {
				o.holds++
			}
		}
	}
}

// finish checks that all works after the last healing, and that nothing is left. Then it judges, and reports on each
// lock, or on all of them together.
func (s *site) finish(each bool, figures func(o outcome) string) {
	s.Helper()
	patience := perhaps
	if s.ours {
		patience = certainly
	}
	fault := func(i int, format string, args ...any) {
		if s.ours {
			s.results[i].other = append(s.results[i].other, fmt.Sprintf(format, args...))
		}
	}
	s.heal()
	healed := now()
	for i, took := range s.served(healed, patience) {
		if took < 0 {
			fault(i, "somebody is not served after the last healing")
			s.tellWaiting(healed)
		}
	}
	for i, waiting := range s.rest(patience) {
		if waiting > 0 {
			fault(i, "%d contenders do not come to rest", waiting)
		}
		// All sessions are open. A waiter that cannot be told to stop has one node.
		if s.results[i].orphans = s.left(s.subjects[i], waiting, patience); s.results[i].orphans > 0 {
			fault(i, "%d nodes left while the workers rest", s.results[i].orphans)
		}
	}
	for _, err := range s.crew.end(patience) {
		s.Log(err)
		fault(0, "%v", err) // it has met all of them
	}
	for i, g := range s.subjects {
		if n := s.left(g, 0, patience); n > 0 {
			fault(i, "%d nodes left after the workers' end", n)
		}
	}
	s.judge()
	sum := row{what: "all of " + s.name, faults: s.faults, rival: !s.ours}
	var all verdict
	for i, o := range s.results {
		r := row{what: s.subjects[i].name, faults: s.faults, holds: o.holds, violations: o.violations, other: o.other, rival: !s.ours}
		r.figures = figures(o)
		if !s.ours {
			r.what = s.name
		}
		if each {
			s.report(r)
		}
		sum.holds += o.holds
		all.add(o.verdict)
	}
	if !each {
		sum.violations, sum.other = all.violations, all.other
		sum.figures = figures(outcome{verdict: all, served: slowest(s.results)})
		s.report(sum)
	}
}

// slowest returns for each round how long the last of all was not served after it.
func slowest(all []outcome) (served []time.Duration) {
	for _, o := range all {
		for i, d := range o.served {
			if i == len(served) {
				served = append(served, d)
			}
			served[i] = max(served[i], d)
		}
	}
	return served
}

// eventually asks again and again, and reports whether the answer was yes in time.
func eventually(within time.Duration, done func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); !done(); <-tick.C {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
