//go:build linux

package nemesis

import (
	"context"
	"fmt"
	"os"
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
// has to survive. An outage is a time in which no leader serves, fewer servers than a majority do, or the observer does not.
// The servers are asked all the time. Losses are not judged if there was a longer outage, or if a client's process or
// this one ran later than the margin of the lease clock.
//
// The rolling upgrade needs a second ZooKeeper. The environment variable ZOOKEEPER_UPGRADE names its directory,
// which is like that of ZOOKEEPER_HOME. The servers start with the first and end with the second.
var restartSchedules = []schedule{
	restarts("rolling restart by SIGKILL", func(s *site) { s.roll(s.Kill, nil) }),
	restarts("rolling restart by SIGTERM", func(s *site) { s.roll(s.Stop, nil) }),
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
	restarts("a client's server removed by reconfig", (*site).removeServers,
		zktest.Property("reconfigEnabled", "true"), zktest.Property("skipACL", "yes")),
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
	return schedule{group: "restarts", name: name, run: func(t *trial) { restart(t, run, nil, opts...) }}
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
	some := ours()
	if !t.full {
		some, _ = chosen(mutexName, rwName, semaphoreName, keptName)
	}
	s := newSite(t, some, seedOf(t), paceOf(labTick), reach, append(opts, zktest.MaxSessionTimeout(20*labTick))...)
	s.begin()
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var longest, late time.Duration
	running.Go(func() { longest, late = outages(ctx, s.Ensemble) })
	for i := range keepers {
		s.take(s.mutex(s.ConnectString(), fmt.Sprintf("/keepers/%d", i), defaultTimeout))
	}
	run(s)
	s.heal()
	stop()
	running.Wait()
	var lost []string
	for _, h := range s.lab.holds {
		if err := h.Err(); err != nil {
			lost = append(lost, "a keeper: "+err.Error())
		}
	}
	for _, e := range s.events() {
		switch e.What {
		case eventLate:
			late = max(late, time.Duration(e.To-e.From))
		case eventLost:
			lost = append(lost, fmt.Sprintf("worker %d: %s", e.Worker, e.Error))
		}
	}
	t.Logf("lost sessions: %q; the longest outage: %v; late by %v at most", lost, longest, late)
	if len(lost) > 0 && longest <= survivable && late <= lateMargin {
		t.Errorf("%d sessions are lost, in no outage of more than %v", len(lost), survivable)
	}
	s.figure("longest outage %.1f s; %d of %d sessions lost", longest.Seconds(), len(lost), workers+keepers)
	s.finish()
	s.lab.judge("mutexes, held all the time", false)
}

// times does something several times, after each of which everybody has to be served.
func (s *site) times(n int, do func()) {
	s.Helper()
	for range n {
		do()
		s.must(s.ready(healing))
		if _, late := s.served(now(), certainly); len(late) > 0 {
			s.Errorf("not everybody is served: %v", late)
		}
	}
}

// roll ends each server and starts it again, as docs/operations.md says: the leader comes last, and each
// time all servers are in the quorum again before the next one.
func (s *site) roll(end func(int) error, between func(int) error) {
	s.Helper()
	leader := s.leader()
	for n := range s.Len() {
		i := (leader + 1 + n) % s.Len()
		s.must(end(i))
		if between != nil {
			s.must(between(i))
		}
		s.back(i)
	}
}

// back starts a server that was ended, and waits until all are in the quorum.
func (s *site) back(i int) {
	s.Helper()
	s.faults++
	s.must(s.Launch(i))
	s.must(s.ready(healing))
}

// rollingUpgrade ends each server, and starts another version of ZooKeeper in its place, on its data.
func (s *site) rollingUpgrade() {
	home := os.Getenv(upgradeEnv)
	version := func(i int) string {
		metrics, err := s.Metrics(s.Context(), i)
		s.must(err)
		return metrics["zk_version"]
	}
	before := []string{version(0), version(1), version(2)}
	s.roll(s.Stop, func(i int) error { return testserver.SetHome(s.Ensemble, i, home) })
	for i := range before {
		if after := version(i); before[i] == after {
			s.Errorf("server %d is still %s", i, after)
		}
	}
}

// killLeader kills the leader, and starts it again at once.
func (s *site) killLeader() {
	leader := s.leader()
	s.must(s.Kill(leader))
	s.back(leader)
}

// pauseFollowers has both followers stand still, for as long as every session survives, and go on.
func (s *site) pauseFollowers() {
	leader := s.leader()
	s.faults++
	for i := 1; i < voters; i++ {
		s.must(s.Pause((leader + i) % voters))
	}
	pause(s.Context(), 3*time.Second)
	for i := 1; i < voters; i++ {
		s.must(s.Resume((leader + i) % voters))
	}
}

// strikeObserver kills the leader and a follower, and restarts the observer.
func (s *site) strikeObserver() {
	s.killLeader()
	follower := (s.leader() + 1) % voters
	s.must(s.Kill(follower))
	s.back(follower)
	s.must(s.Stop(observer))
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
	add(remove((s.leader() + 1) % voters))
	add(remove(s.leader()))
	s.gone = append(s.gone, remove((s.leader()+1)%voters))
	s.must(s.Stop(s.gone[0]))
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
// meanwhile. Nobody gets a lock, and the holder knows in time that it has lost its own. Then rivals get them.
func quorumLost(t *trial, mode string, opts ...zktest.RealOption) {
	l := newLab(t, voters, opts...)
	leader := l.leader()
	all := l.ConnectString()
	holder, first := l.pair(all, "/quorum/held", defaultTimeout)
	free := l.mutex(all, "/quorum/free", defaultTimeout)
	l.faults++
	for i := 1; i < voters; i++ {
		l.must(l.Kill((leader + i) % voters))
	}
	pause(l.ctx, quorumSettled)
	if mode != "" {
		l.eventually("a server that is "+mode, func() bool { return modesOf(l.ctx, l.Ensemble, time.Second)[leader] == mode })
	}
	second := l.contendWithin(l.ctx, free)
	pause(l.ctx, withoutQuorum)
	if got := modesOf(l.ctx, l.Ensemble, time.Second)[leader]; got != mode {
		t.Errorf("the server that is left is %q and not %q", got, mode)
	}
	l.mustWait(first, "there is no quorum")
	l.mustWait(second, "there is no quorum")
	if holder.isHeld() {
		t.Errorf("a client still holds after %v without a quorum", withoutQuorum)
	}
	for i := 1; i < voters; i++ {
		l.must(l.Launch((leader + i) % voters))
	}
	l.must(l.WaitReady(l.ctx))
	l.gets(first)
	l.gets(second)
	l.judge("a mutex", false)
}

// The observer is away for longer than sessions live. A client that knows only the observer has a lock, and another takes
// it.
func observerAway(t *trial) {
	l := newLab(t, voters, zktest.Observers(1))
	_, next := l.pair(l.Addr(observer), "/observer", defaultTimeout)
	l.faults++
	l.must(l.Kill(observer))
	l.gets(next)
	l.must(l.Start(l.ctx, observer))
	back := l.contend(l.mutex(l.Addr(observer), "/observer", defaultTimeout))
	l.must(next.held.release())
	l.gets(back)
	l.judge("a mutex", false)
}
