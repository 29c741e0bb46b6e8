//go:build linux

package nemesis

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// These are schedules of what operators and failures do to ensembles: they restart one server after another, upgrade
// and remove servers, leaders die, and the quorum is lost. Ticks and session timeouts are the defaults: 2 s and 10 s.
//
// Besides what is checked in an attack, no session is lost, except in an outage that is longer than a session of 10 s
// has to survive. An outage, for one client, is a time in which no leader serves, fewer servers than a majority do, or
// none of those does that the client may connect to. The servers are asked all the time. Losses are not judged if the
// client's process or this one ran later than the margin of the lease clock.
//
// The rolling upgrade needs a second ZooKeeper. The environment variable ZOOKEEPER_UPGRADE names its directory,
// which is like that of ZOOKEEPER_HOME. The servers start with the first and end with the second.
var restartSchedules = []schedule{
	restarts("rolling restart by SIGKILL", func(s *site) { s.roll(s.ensemble.Kill, nil) }),
	restarts("rolling restart by SIGTERM", func(s *site) { s.roll(s.ensemble.Stop, nil) }),
	{group: "restarts", name: "rolling upgrade", run: func(t *trial) {
		if os.Getenv(upgradeEnv) == "" {
			t.Skipf("%s names no second ZooKeeper, so none is upgraded", upgradeEnv)
		}
		restart(t, (*site).rollingUpgrade, nil)
	}},
	{group: "restarts", name: "leader killed again and again", short: true, run: func(t *trial) {
		restart(t, func(s *site) {
			if s.killLeader(); t.full {
				s.times(4, s.killLeader)
			}
		}, nil)
	}},
	restarts("quorum lost for 3 s", func(s *site) { s.times(2, s.pauseFollowers) }),
	restarts("a client's server removed by reconfig", (*site).removeServers, zktest.Property("reconfigEnabled", "true"), zktest.Property("skipACL", "yes")),
	{group: "restarts", name: "an observer as the only server", run: func(t *trial) {
		restart(t, (*site).strikeObserver, viaObserver, zktest.Observers(1))
	}},
	{group: "restarts", name: "quorum lost for longer than sessions live", run: func(t *trial) { quorumLost(t, "") }},
	{group: "restarts", name: "read-only mode", run: func(t *trial) {
		quorumLost(t, "read-only", zktest.Environ("JAVA_TOOL_OPTIONS", "-Dreadonlymode.enabled=true"))
	}},
	{group: "restarts", name: "the observer away for longer than sessions live", run: observerAway},
}

func restarts(name string, run func(*site), opts ...zktest.RealOption) schedule {
	return schedule{group: "restarts", name: name, run: func(t *trial) {
		restart(t, run, nil, opts...)
	}}
}

const (
	upgradeEnv     = "ZOOKEEPER_UPGRADE"
	defaultTimeout = 10 * time.Second // session.WithTimeout's default

	// lateMargin is session.WithMargin's default. It is for threads that run late.
	lateMargin = defaultTimeout / 10

	// survivable is the longest outage in which no session may be lost: see package outages.
	survivable = 4500 * time.Millisecond

	// observer is the server behind the voters.
	observer = voters

	// keepers is how many sessions hold a lock from a moment of their own to the end.
	keepers = 12
)

// viaObserver has every second worker connect to the observer only, and the others to any server.
func viaObserver(worker int) []int {
	if worker%2 == 0 {
		return []int{observer}
	}
	return []int{0, 1, 2, observer}
}

// restart has workers use all locks, and sessions of this process hold locks, while something is done to the servers.
func restart(t *trial, run func(*site), reach func(worker int) []int, opts ...zktest.RealOption) {
	t.Helper()
	some := subjects
	if !t.full {
		some, _ = chosen([]string{mutexName, rwName, semaphoreName, keptName})
	}
	s := newSite(t, turnstile(some), seedOf(t), paceOf(labTick), reach, append(opts, zktest.MaxSessionTimeout(20*labTick))...)
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s.begin()
	health := watchHealth(ctx, s.ensemble, &running)
	l := labOf(t, s.ensemble)
	for i := range keepers {
		l.take(l.mutex(s.ensemble.ConnectString(), fmt.Sprintf("/keepers/%d", i), defaultTimeout))
	}
	began := now()
	run(s)
	s.heal()
	stall := s.longestStall(began)
	lost := s.judgeLosses(health, reach)
	for _, h := range l.holds {
		if err := h.Err(); err != nil {
			lost++
			s.judgeLoss(health, "a keeper", []int{0, 1, 2}, time.Now(), err.Error(), health.lateness() > lateMargin)
		}
	}
	everybody := [][]int{{0}, {1}, {2}}
	if reach != nil {
		everybody = [][]int{{observer}}
	}
	stop()
	running.Wait()
	s.finish(false, func(outcome) string {
		return fmt.Sprintf("longest outage %.1f s; longest time without a mutex for anybody %.1f s; %d of %d sessions lost, in outages that are too long",
			longest(health.outages(everybody...)).Seconds(), stall.Seconds(), lost, workers+keepers)
	})
	l.judge("mutexes, held all the time", false)
}

// judgeLosses checks that workers have lost no session in an outage that they have to survive, and returns how many
// they have lost.
func (s *site) judgeLosses(h *health, reach func(worker int) []int) (n int) {
	s.Helper()
	events := s.events()
	starved := h.lateness() > lateMargin
	for _, e := range events {
		starved = starved || e.What == eventLate && time.Duration(e.To-e.From) > lateMargin
	}
	for _, e := range events {
		if e.What != eventLost {
			continue
		}
		servers := []int{0, 1, 2}
		if reach != nil {
			servers = reach(e.Worker)
		}
		n++
		at := time.Now().Add(-time.Duration(now() - e.To))
		s.judgeLoss(h, fmt.Sprintf("worker %d", e.Worker), servers, at, e.Error, starved)
	}
	return n
}

// judgeLoss fails the test for a session that was lost at some time, or before, unless there was an outage that
// sessions need not survive, or a process was starved.
func (s *site) judgeLoss(h *health, who string, servers []int, at time.Time, why string, starved bool) {
	s.Helper()
	outages := h.outages(servers)
	if slices.ContainsFunc(outages, func(o stretch) bool { return o.excuses(at) }) {
		return
	}
	report := s.Errorf
	if starved {
		report = s.Logf
	}
	report("%s lost its session by %s, in no outage of more than %v (starved: %v): %s; outages: %v",
		who, at.Format("15:04:05.000"), survivable, starved, why, outages)
}

// longestStall returns the longest time in which no worker got the mutex, since the faults began.
func (s *site) longestStall(began int64) time.Duration {
	worst, last := int64(0), began
	for _, e := range append(s.events(), event{Lock: mutexName, What: eventGot, To: now()}) {
		if e.Lock == mutexName && e.What == eventGot && e.To > began {
			worst, last = max(worst, e.To-last), e.To
		}
	}
	return time.Duration(worst)
}

// times does something several times, after each of which everybody has to be served.
func (s *site) times(n int, do func()) {
	s.Helper()
	for range n {
		do()
		s.must(s.ready(healing))
		if took := s.served(now(), certainly); slices.Contains(took, -1) {
			s.Errorf("not everybody is served: %v", took)
		}
	}
}

// roll ends each server and starts it again, as docs/operations.md says: the leader comes last, and each
// time all servers are in the quorum again before the next one.
func (s *site) roll(end func(int) error, between func(int) error) {
	s.Helper()
	leader := s.leads()
	for n := range s.ensemble.Len() {
		i := (leader + 1 + n) % s.ensemble.Len()
		s.must(end(i))
		if between != nil {
			s.must(between(i))
		}
		s.back(i)
	}
}

// leads returns the server that leads.
func (s *site) leads() int {
	s.Helper()
	i, err := s.ensemble.Leader(s.Context())
	s.must(err)
	return i
}

// back starts servers that were ended, and waits until all are in the quorum.
func (s *site) back(ended ...int) {
	s.Helper()
	for _, i := range ended {
		s.faults++
		s.must(s.ensemble.Launch(i))
	}
	s.must(s.ready(healing))
}

// rollingUpgrade ends each server, and starts another version of ZooKeeper in its place, on its data.
func (s *site) rollingUpgrade() {
	home := os.Getenv(upgradeEnv)
	before := s.versions()
	s.roll(s.ensemble.Stop, func(i int) error { return testserver.SetHome(s.ensemble, i, home) })
	after := s.versions()
	s.Logf("from %s to %s", before, after)
	for i := range after {
		if before[i] == after[i] {
			s.Errorf("server %d is still %s", i, after[i])
		}
	}
}

// versions returns the version of each server.
func (s *site) versions() (all []string) {
	s.Helper()
	for i := range s.ensemble.Len() {
		metrics, err := s.ensemble.Metrics(s.Context(), i)
		s.must(err)
		version, _, _ := strings.Cut(metrics["zk_version"], "-")
		all = append(all, version)
	}
	return all
}

// killLeader kills the leader, and starts it again at once.
func (s *site) killLeader() {
	leader := s.leads()
	s.must(s.ensemble.Kill(leader))
	s.back(leader)
}

// pauseFollowers has both followers stand still, for as long as every session survives, and go on.
func (s *site) pauseFollowers() {
	leader := s.leads()
	s.faults++
	for i := 1; i < voters; i++ {
		s.must(s.ensemble.Pause((leader + i) % voters))
	}
	pause(s.Context(), 3*time.Second)
	for i := 1; i < voters; i++ {
		s.must(s.ensemble.Resume((leader + i) % voters))
	}
}

// strikeObserver kills the leader and a follower, and restarts the observer.
func (s *site) strikeObserver() {
	s.killLeader()
	follower := (s.leads() + 1) % voters
	s.must(s.ensemble.Kill(follower))
	s.back(follower)
	s.must(s.ensemble.Stop(observer))
	s.back(observer)
}

// removeServers removes servers to which clients are connected by reconfig: a follower and then the leader, which are
// added again while they run, and then a follower, which is stopped for good.
func (s *site) removeServers() {
	members, _, err := s.admin.Get("/zookeeper/config")
	s.must(err)
	remove := func(i int) int {
		s.reconfig(nil, []string{fmt.Sprint(i + 1)})
		return i
	}
	add := func(i int) {
		s.reconfig([]string{member(members, i)}, nil)
		s.must(s.ready(healing))
	}
	add(remove((s.leads() + 1) % voters))
	add(remove(s.leads()))
	s.gone = append(s.gone, remove((s.leads()+1)%voters))
	s.must(s.ensemble.Stop(s.gone[0]))
	pause(s.Context(), 3*time.Second)
}

// reconfig changes the members of the ensemble, and lets it work for a while. It tries again while the servers elect a
// leader.
func (s *site) reconfig(joining, leaving []string) {
	s.Helper()
	s.faults++
	zktest.Eventually(s, certainly, fmt.Sprintf("%q to join and %q to leave", joining, leaving), func() bool {
		_, err := s.admin.IncrementalReconfig(joining, leaving, -1)
		return err == nil
	})
	pause(s.Context(), 3*time.Second)
}

// member returns the line of a configuration that is about server i.
func member(config []byte, i int) string {
	for line := range strings.Lines(string(config)) {
		if strings.HasPrefix(line, fmt.Sprintf("server.%d=", i+1)) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

const (
	// quorumSettled is how long after a loss of the quorum something may still have been under way.
	quorumSettled = 2 * time.Second
	// withoutQuorum is how long there is no quorum then: longer than any session lives by itself.
	withoutQuorum = defaultTimeout + labTick
)

// Both followers are killed, and stay away for longer than sessions live. The server that is left has a mode
// meanwhile. Nobody gets a lock, and all holders know in time that they have lost theirs. Then rivals get them.
func quorumLost(t *trial, mode string, opts ...zktest.RealOption) {
	l := newLab(t, voters, opts...)
	leader := l.leader()
	all := l.ConnectString()
	var rivals []*rival
	var holders []*held
	for i := range 4 {
		h, _ := l.take(l.mutex(all, fmt.Sprintf("/quorum/%d", i), defaultTimeout))
		holders = append(holders, h)
		rivals = append(rivals, l.contend(l.mutex(all, fmt.Sprintf("/quorum/%d", i), defaultTimeout), 1))
	}
	free := l.mutex(all, "/quorum/free", defaultTimeout)
	l.faults++
	for i := 1; i < voters; i++ {
		l.must(l.Kill((leader + i) % voters))
	}
	pause(l.ctx, quorumSettled)
	if mode != "" {
		l.eventually("a server that is "+mode, func() bool { return modeOf(l.ctx, l.Ensemble, leader) == mode })
	}
	waits := l.contendWithin(l.ctx, free)
	pause(l.ctx, withoutQuorum)
	if got := modeOf(l.ctx, l.Ensemble, leader); got != mode {
		t.Errorf("the server that is left is %q and not %q", got, mode)
	}
	for i, r := range append(rivals, waits) {
		l.mustWait(r, "there is no quorum")
		if i < len(holders) && holders[i].isHeld() {
			t.Errorf("a client still holds after %v without a quorum", withoutQuorum)
		}
	}
	for i := 1; i < voters; i++ {
		l.must(l.Launch((leader + i) % voters))
	}
	l.must(l.WaitReady(l.ctx))
	for _, r := range append(rivals, waits) {
		l.gets(r)
	}
	l.judge("a mutex", false)
}

// The observer is away for longer than sessions live. Clients that know only the observer have all locks, and
// the others take them.
func observerAway(t *trial) {
	l := newLab(t, voters, zktest.Observers(1))
	var rivals []*rival
	for i := range 4 {
		path := fmt.Sprintf("/observer/%d", i)
		l.take(l.mutex(l.Addr(observer), path, defaultTimeout))
		rivals = append(rivals, l.contend(l.mutex(l.ConnectString(), path, defaultTimeout), 1))
	}
	l.faults++
	l.must(l.Kill(observer))
	for _, r := range rivals {
		l.gets(r)
	}
	l.must(l.Start(l.ctx, observer))
	back := l.contend(l.mutex(l.Addr(observer), rivals[0].held.path, defaultTimeout), 1)
	l.must(rivals[0].held.release())
	l.gets(back)
	l.judge("a mutex", false)
}
