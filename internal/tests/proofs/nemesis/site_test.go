//go:build linux

package nemesis

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
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
)

// pace is how fast the servers are.
type pace struct {
	tick    time.Duration // of the servers: followers are given up after five
	timeout time.Duration // of sessions
}

func paceOf(tick time.Duration) pace { return pace{tick, max(2*time.Second, 5*tick)} }

// site is a lab with a process for each worker, which use some locks. One goroutine uses it.
type site struct {
	*lab
	pace
	verdict  // of what has been judged
	subjects []subject
	links    *peerlink.Links // nil: the servers speak to each other directly
	proxies  [workers][]*zktest.Proxy
	addrs    [workers]string // of the proxies
	desk     *desk
	lives    [workers][]*process
	settings settings // of all processes
	dir      string   // of their logs
	admin    *zk.Conn
	holds    int
	stalls   int
	waited   []time.Duration // after healing, until everybody was served
	settles  bool            // after each round the workers rest, and what they have in use is counted
	base     [workers]counts
	gone     []int // servers that stay away
}

// newSite starts the servers. reach says to which servers a worker connects; nil: to all.
func newSite(t *trial, some []subject, seed uint64, p pace, reach func(worker int) []int, opts ...zktest.RealOption) *site {
	t.Helper()
	knows, err := saslserver.Options(t.TempDir(), map[string]string{user: password})
	t.must(err)
	opts = append(append(knows, zktest.Servers(voters), zktest.TickTime(p.tick), zktest.ContainerCheck(2*p.tick)), opts...)
	s := &site{
		lab: labOf(t, zktest.StartReal(t, opts...)), pace: p, subjects: some, desk: newDesk(some),
		settings: settings{Seed: seed, Timeout: p.timeout}, dir: t.TempDir(),
	}
	for _, one := range some {
		s.settings.Paths = append(s.settings.Paths, path.Join(lockDir, one.name))
	}
	s.admin, _, err = zk.Connect(strings.Split(s.ConnectString(), ","), healing, zk.WithLogger(silent{}))
	t.must(err)
	t.Cleanup(s.admin.Close)
	s.closeLocks()
	t.Cleanup(func() { // of a test that fails half-way
		s.processes(func(_ int, p *process) {
			if p.alive() {
				p.kill()
			}
		})
	})
	for i := range workers {
		var addrs []string
		for j := range s.Len() {
			proxy := zktest.StartProxy(t, s.Addr(j))
			s.proxies[i] = append(s.proxies[i], proxy)
			if reach == nil || slices.Contains(reach(i), j) {
				addrs = append(addrs, proxy.Addr())
			}
		}
		s.addrs[i] = strings.Join(addrs, ",")
	}
	return s
}

// begin has the workers work.
func (s *site) begin() {
	s.Helper()
	s.heal()
	if _, late := s.served(0, certainly); len(late) > 0 {
		s.Fatalf("not everybody is served before anything has gone wrong: %v", late)
	}
}

// closeLocks makes the directories that are not open to all.
func (s *site) closeLocks() {
	s.Helper()
	s.must(s.admin.AddAuth("digest", []byte(user+":"+password)))
	create := func(dir string, acl []zk.ACL) {
		s.eventually("the directory "+dir, func() bool {
			_, err := s.admin.Create(dir, nil, 0, acl)
			return err == nil || errors.Is(err, zk.ErrNodeExists)
		})
	}
	create(lockDir, zk.WorldACL(zk.PermAll))
	for _, g := range s.subjects {
		if g.acl != nil {
			create(path.Join(lockDir, g.name), g.acl)
		}
	}
}

// note logs an error of a call that should have worked.
func (s *site) note(err error) {
	if err != nil {
		s.Logf("nemesis: %v", err)
	}
}

// fault is a finding.
func (s *site) fault(format string, args ...any) {
	s.other = append(s.other, fmt.Sprintf(format, args...))
}

// processes calls f for the present process of each worker, if it has had one, at the same time.
func (s *site) processes(f func(i int, p *process)) {
	var all sync.WaitGroup
	for i, lives := range s.lives {
		if n := len(lives); n > 0 {
			all.Go(func() { f(i, lives[n-1]) })
		}
	}
	all.Wait()
}

// process returns the present process of a worker.
func (s *site) process(i int) *process { return s.lives[i][len(s.lives[i])-1] }

// heal ends all faults, and returns when all servers serve, and all workers work.
func (s *site) heal() {
	s.Helper()
	s.links.Heal()
	s.servers(func(i int) { _ = s.raise(i) }) // which is running, as a rule
	for i := range workers {
		s.doors(i, (*zktest.Proxy).Heal)
		s.doors(i, (*zktest.Proxy).ResetRequests) // it keeps so many
	}
	s.processes(func(_ int, p *process) { p.resume() })
	if err := s.ready(healing); err != nil {
		s.Logf("%v: all servers are started again", err)
		s.servers(func(i int) {
			s.note(s.Kill(i))
			s.note(s.Launch(i))
		})
		s.must(s.ready(3 * healing))
	}
	for i := range workers {
		s.start(i)
	}
}

// servers calls f for each server that does not stay away.
func (s *site) servers(f func(i int)) {
	for i := range s.Len() {
		if !slices.Contains(s.gone, i) {
			f(i)
		}
	}
}

// start gives a worker a process if it has none. What the process has in use is counted before it works.
func (s *site) start(i int) {
	s.Helper()
	if n := len(s.lives[i]); n > 0 && s.lives[i][n-1].alive() {
		return
	}
	own := s.settings
	own.Worker, own.Life, own.Servers = i, len(s.lives[i])+1, s.addrs[i]
	p, err := startProcess(own, s.dir, s.desk.listen)
	s.must(err)
	s.lives[i] = append(s.lives[i], p)
	if s.settles {
		all, ok := s.rest(certainly, i)
		if !ok {
			s.Fatalf("worker %d does not begin; its log:\n%s", i, p.log())
		}
		s.base[i] = all[0]
	}
	p.tell("work")
}

// tell gives all workers an order.
func (s *site) tell(order string) { s.processes(func(_ int, p *process) { p.tell(order) }) }

// rest has workers come to rest, and returns what they have in use then, and false if one of them does not in time.
func (s *site) rest(within time.Duration, who ...int) (all []counts, ok bool) {
	for _, i := range who {
		select {
		case <-s.desk.rests[i]: // of before
		default:
		}
		s.process(i).tell("rest")
	}
	end := time.After(within)
	for _, i := range who {
		select {
		case c := <-s.desk.rests[i]:
			all = append(all, c)
		case <-end:
			return nil, false
		}
	}
	return all, true
}

var everybody = []int{0, 1, 2, 3, 4}

// ready waits until all servers serve, and one leads the others: a leader that was stopped
// says that it leads for a while after it has been deposed.
func (s *site) ready(within time.Duration) error {
	ctx, cancel := context.WithTimeout(s.Context(), within)
	defer cancel()
	if err := s.WaitReady(ctx); err != nil {
		return err
	}
	var leaders int
	if !eventually(within, func() bool {
		leaders = 0
		for _, mode := range modesOf(ctx, s.Ensemble, time.Second) {
			if mode == "leader" {
				leaders++
			}
		}
		return leaders == 1
	}) {
		return fmt.Errorf("%d servers lead", leaders)
	}
	return nil
}

// served waits until all contenders have had their locks since a time. It returns how long the last of them waited, and
// those that were not served in time, whose processes' logs it shows.
func (s *site) served(from int64, within time.Duration) (took time.Duration, late []seat) {
	s.Helper()
	eventually(within, func() bool {
		var last int64
		late, last = s.desk.since(from)
		took = time.Duration(last - from)
		return len(late) == 0
	})
	s.processes(func(i int, p *process) {
		if slices.ContainsFunc(late, func(at seat) bool { return at.worker == i }) {
			s.Logf("worker %d waits for long; the end of its log:\n%s", i, p.log())
		}
	})
	return took, late
}

// left waits until no contender has a node, and returns those that are left if that takes too long.
func (s *site) left() (nodes []string) {
	eventually(certainly, func() bool {
		all, err := s.below(lockDir)
		nodes = slices.DeleteFunc(all, func(node string) bool {
			_, contends := queue.ParseNode(path.Base(node))
			return !contends
		})
		return err == nil && len(nodes) == 0
	})
	return nodes
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
	deaths, of := make(map[lifeID]int64), make(map[string][]event)
	for i, lives := range s.lives {
		for j, p := range lives {
			if !p.alive() {
				deaths[lifeID{i, j + 1}] = p.died
			}
		}
	}
	for _, e := range s.events() {
		of[e.Lock] = append(of[e.Lock], e)
		if e.What == eventGot {
			s.holds++
		}
	}
	for _, g := range s.subjects {
		s.add(judge(g.rule, of[g.name], deaths).of(g.name))
	}
}

// finish checks that all works after the last healing, and that nothing is left. Then it judges and reports. A rival may do
// what it will.
func (s *site) finish() {
	s.Helper()
	what, rival := "all of turnstile", s.subjects[0].name == rivalName
	if rival {
		what = rivalName
	}
	s.heal()
	if _, late := s.served(now(), certainly); len(late) > 0 {
		s.fault("not served after the last healing: %v", late)
	}
	if _, ok := s.rest(certainly, everybody...); !ok {
		s.fault("not everybody comes to rest")
	}
	if nodes := s.left(); len(nodes) > 0 { // all sessions are open
		s.fault("nodes left while the workers rest: %q", nodes)
	}
	s.processes(func(_ int, p *process) { p.end() })
	for i, lives := range s.lives {
		for _, p := range lives {
			if p.err != nil && !p.killed {
				s.fault("worker %d ended by itself: %v; the end of its log:\n%s", i, p.err, p.log())
			}
		}
	}
	if nodes := s.left(); len(nodes) > 0 {
		s.fault("nodes left after the workers' end: %q", nodes)
	}
	s.judge()
	if sorted := slices.Sorted(slices.Values(s.waited)); len(sorted) > 0 {
		s.figure("served after healing: %.2f s (median), %.2f s at most", sorted[len(sorted)/2].Seconds(), sorted[len(sorted)-1].Seconds())
	}
	s.figure("%d stalls; %d holds in a place that had been held before", s.stalls, s.again)
	s.report(what, s.holds, s.verdict, rival)
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
