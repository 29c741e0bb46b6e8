//go:build linux

package nemesis

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/zktest"
)

const (
	tick     = 250 * time.Millisecond // of the servers: followers are given up after five
	timeout  = 2 * time.Second        // of sessions
	lockPath = "/nemesis/lock"
	healing  = time.Minute // how long all servers may take to serve again
)

// site is where one contestant is attacked. One goroutine uses it.
type site struct {
	t        *testing.T
	timeout  time.Duration
	ensemble *zktest.Ensemble
	proxies  [workers][servers]*zktest.Proxy
	register *register
	crew     *crew
	journal  string
	admin    *zk.Conn
}

func newSite(t *testing.T, cmd command, seed uint64) *site {
	t.Helper()
	s := &site{t: t, timeout: timeout, journal: filepath.Join(t.TempDir(), "journal")}
	s.ensemble = zktest.StartReal(t, zktest.Nodes(servers), zktest.TickTime(tick), zktest.Partitions())
	var err error
	if s.register, err = newRegister(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.register.close() })
	if s.admin, _, err = zk.Connect(strings.Split(s.ensemble.ConnectString(), ","), healing, zk.WithLogger(silent{})); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.admin.Close)
	s.crew = &crew{
		command:  cmd,
		settings: settings{path: lockPath, register: s.register.addr(), journal: s.journal, seed: seed, timeout: timeout},
		dir:      t.TempDir(),
	}
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

// note logs what should have worked.
func (s *site) note(err error) {
	if err != nil {
		s.t.Logf("nemesis: %v", err)
	}
}

// heal undoes all there is, and returns when all servers serve.
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

// served waits until all workers have had the lock since a time. It returns how long the
// last of them waited, and false if within did not suffice.
func (s *site) served(from int64, within time.Duration) (time.Duration, bool) {
	var last int64
	ok := eventually(within, func() bool {
		last = from
		for i := range workers {
			at, _ := s.register.seen(i)
			if at <= from {
				return false
			}
			last = max(last, at)
		}
		return true
	})
	return time.Duration(last - from), ok
}

// tellWaiting logs what those workers have printed who had to wait until a time, or longer.
func (s *site) tellWaiting(until int64) {
	s.t.Helper()
	for i := range workers {
		if at, _ := s.register.seen(i); at <= until {
			s.t.Logf("worker %d waited for long; the end of its log:\n%s", i, s.crew.now[i].log(4<<10))
		}
	}
}

// rest has all workers come to rest, and returns how many do not within a time: those that
// wait for a lock and cannot be told otherwise.
func (s *site) rest(within time.Duration) (waiting int) {
	s.crew.rest()
	eventually(within, func() bool {
		waiting = 0
		for i := range workers {
			if _, rests := s.register.seen(i); !rests {
				waiting++
			}
		}
		return waiting == 0
	})
	return waiting
}

// left waits until there are no more nodes than most under the lock, and returns how many
// more there are if within does not suffice.
func (s *site) left(most int, within time.Duration) (more int) {
	s.t.Helper()
	var err error
	eventually(within, func() bool {
		var names []string
		names, _, err = s.admin.Children(lockPath)
		if errors.Is(err, zk.ErrNoNode) {
			err = nil
		}
		more = max(0, len(names)-most)
		return err == nil && more == 0
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return more
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
