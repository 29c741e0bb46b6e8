//go:build linux

package nemesis

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/saslserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	lockDir = "/nemesis"  // what all locks are below
	healing = time.Minute // how long all servers may take to serve again
)

// pace is how fast the servers are.
type pace struct {
	tick    time.Duration // of the servers: followers are given up after five
	timeout time.Duration // of sessions
}

// shortTick is far below ZooKeeper's own, so that more happens in a minute.
const shortTick = 250 * time.Millisecond

func paceOf(tick time.Duration) pace { return pace{tick, max(2*time.Second, 5*tick)} }

// stall is how long after healing a worker may wait to be served. The attack goes on after that.
func (p pace) stall() time.Duration { return 5 * p.timeout }

// site is where one contestant is attacked. One goroutine uses it.
type site struct {
	pace
	t        *testing.T
	ensemble *zktest.Ensemble
	proxies  [workers][servers]*zktest.Proxy
	targets  []*target
	entered  chan int // tells a listener which worker will keep a lock for a while
	crew     *crew
	admin    *zk.Conn
	each     witnesses
}

// target is a lock under attack.
type target struct {
	subject
	register *register
	journal  string
}

func (g *target) path() string { return path.Join(lockDir, g.name) }

func newSite(t *testing.T, c contestant, seed uint64, p pace) *site {
	t.Helper()
	s := &site{t: t, pace: p, entered: make(chan int)}
	knows, err := saslserver.Options(t.TempDir(), user, password)
	if err != nil {
		t.Fatal(err)
	}
	s.ensemble = zktest.StartReal(t, append(knows, zktest.Nodes(servers), zktest.TickTime(p.tick), zktest.Partitions())...)
	if s.each, err = newWitnesses(t, s.ensemble, p); err != nil {
		t.Fatal(err)
	}
	var places []place
	for _, one := range c.subjects {
		g := &target{subject: one, journal: filepath.Join(t.TempDir(), "journal")}
		if g.register, err = newRegister(g.hands, s.entered, func() bool { return s.each.agree(t.Context(), g.path()) }); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.register.close() })
		s.targets = append(s.targets, g)
		places = append(places, place{g.path(), g.register.addr(), g.journal})
	}
	if s.admin, _, err = zk.Connect(strings.Split(s.ensemble.ConnectString(), ","), healing, zk.WithLogger(silent{})); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.admin.Close)
	if err := s.closeLocks(); err != nil {
		t.Fatal(err)
	}
	s.crew = &crew{command: c.command(t), settings: settings{seed: seed, timeout: p.timeout}, dir: t.TempDir()}
	s.crew.settings.setPlaces(places)
	t.Cleanup(s.crew.killAll)
	for i := range workers {
		var addrs []string
		for j := range servers {
			s.proxies[i][j] = zktest.StartProxy(t, s.ensemble.Addr(j))
			addrs = append(addrs, s.proxies[i][j].Addr())
		}
		s.crew.servers[i] = strings.Join(addrs, ",")
		if err := s.crew.start(i); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// closeLocks makes the directories that are not open to all.
func (s *site) closeLocks() error {
	errs := []error{s.admin.AddAuth("digest", []byte(user+":"+password))}
	for _, g := range s.targets {
		if g.acl == nil {
			continue
		}
		if _, err := s.admin.Create(lockDir, nil, 0, zk.WorldACL(zk.PermAll)); !errors.Is(err, zk.ErrNodeExists) {
			errs = append(errs, err)
		}
		_, err := s.admin.Create(g.path(), nil, 0, g.acl)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// note logs an error of a call that should have worked.
func (s *site) note(err error) {
	if err != nil {
		s.t.Logf("nemesis: %v", err)
	}
}

// heal ends all faults, and returns when all servers serve.
func (s *site) heal() {
	s.t.Helper()
	s.ensemble.HealPartitions()
	for i := range servers {
		_ = s.raise(i) // which is running, as a rule
	}
	for i := range workers {
		for _, p := range s.proxies[i] {
			p.Heal()
			p.ResetRequests() // it keeps so many
		}
		s.crew.resume(i)
		if err := s.crew.start(i); err != nil {
			s.t.Fatal(err)
		}
	}
	if s.ready(healing) == nil {
		return
	}
	s.t.Log("the servers do not serve: all are started again")
	for i := range servers {
		s.note(s.ensemble.Kill(i))
		s.note(s.ensemble.Launch(i))
	}
	if err := s.ready(3 * healing); err != nil {
		s.t.Fatal(err)
	}
}

// ready waits until all servers serve, and one leads the others: a leader that was stopped
// says that it leads for a while after it has been deposed.
func (s *site) ready(within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := s.ensemble.WaitReady(ctx); err != nil {
		return err
	}
	if !eventually(within, func() bool { return s.followers(ctx) == servers-1 }) {
		return errors.New("the servers do not agree on a leader")
	}
	return nil
}

func (s *site) followers(ctx context.Context) int {
	n := 0
	for i := range servers {
		if m, err := s.ensemble.Metrics(ctx, i); err == nil && m["zk_server_state"] == "follower" {
			n++
		}
	}
	return n
}

// served waits until all contenders have had their locks since a time. It returns, in the order
// of the targets, how long the last of each waited, and -1 if within did not suffice.
func (s *site) served(from int64, within time.Duration) []time.Duration {
	took := slices.Repeat([]time.Duration{-1}, len(s.targets))
	eventually(within, func() bool {
		all := true
		for i, g := range s.targets {
			last, done := g.register.servedSince(from)
			if all = all && done; done && took[i] < 0 {
				took[i] = time.Duration(last - from)
			}
		}
		return all
	})
	return took
}

// tellWaiting logs the output of the workers that had to wait until a time, or longer.
func (s *site) tellWaiting(until int64) {
	s.t.Helper()
	var names [workers][]string
	for _, g := range s.targets {
		for i, late := range g.register.waiting(until) {
			if late {
				names[i] = append(names[i], g.name)
			}
		}
	}
	for i, late := range names {
		if len(late) > 0 {
			s.t.Logf("worker %d waited for long for %v; the end of its log:\n%s", i, late, s.crew.now[i].log(4<<10))
		}
	}
}

// rest has all workers come to rest, and returns how many contenders of each target do not
// within a time: those that wait for a lock and cannot be told otherwise.
func (s *site) rest(within time.Duration) []int {
	s.crew.rest()
	waiting := make([]int, len(s.targets))
	eventually(within, func() bool {
		sum := 0
		for i, g := range s.targets {
			waiting[i] = g.register.restless()
			sum += waiting[i]
		}
		return sum == 0
	})
	return waiting
}

// left waits until there are no more nodes than most under a lock, and returns how many more
// there are if within does not suffice.
func (s *site) left(g *target, most int, within time.Duration) (more int) {
	s.t.Helper()
	var err error
	eventually(within, func() bool {
		more, err = s.count(g.path(), g.dirs)
		more = max(0, more-most)
		return err == nil && more == 0
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return more
}

// count returns how many contenders there are in a directory, with those of its own that are named.
func (s *site) count(dir string, dirs []string) (n int, err error) {
	names, _, err := s.admin.Children(dir)
	for _, name := range names {
		if _, ok := queue.ParseNode(name); ok {
			n++
		}
		if slices.Contains(dirs, name) {
			below, errBelow := s.count(path.Join(dir, name), nil)
			n, err = n+below, errors.Join(err, errBelow)
		}
	}
	if errors.Is(err, zk.ErrNoNode) {
		err = nil
	}
	return n, err
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
