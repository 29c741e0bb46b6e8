package ensembles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/referee"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	voters = 3
	// within bounds one run of a scenario, on a busy machine.
	within = 5 * time.Minute
	// certainly bounds the wait for what must happen once all servers serve.
	certainly = time.Minute
)

// scenario is what happens to an ensemble.
type scenario struct {
	name    string
	options []zktest.RealOption
	servers func(client int) []int // to which a client may connect; nil: to all
	run     func(ctx context.Context, s *site) error
}

// site is an ensemble and its clients.
type site struct {
	*zktest.Ensemble
	t       *testing.T
	referee *referee.Referee
	health  *health
	clients []*client
	leases  sync.Map // from clients to what they hold
	faults  int

	mu     sync.Mutex
	grants []time.Time // of the workers' lock
}

// test runs the scenario as often as the flag says.
func (sc scenario) test(t *testing.T) {
	t.Helper()
	for run := range max(1, *runsFlag) {
		r := sc.once(t)
		t.Logf("%s, run %d: %v", sc.name, run+1, r)
		if t.Failed() {
			t.FailNow()
		}
		results.add(sc.name, r)
	}
}

// once runs the scenario with servers and clients of its own.
func (sc scenario) once(t *testing.T) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s := sc.start(ctx, t)
	defer func() {
		if t.Failed() {
			return // StartReal prints the logs, and closes
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	var running sync.WaitGroup
	defer running.Wait()
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	s.health = watchHealth(watching, s.Ensemble, voters, &running)
	defer s.closeClients()
	s.connect(ctx)
	defer s.work(ctx)()
	s.everyoneServed()
	began := time.Now()
	if err := sc.run(ctx, s); err != nil {
		t.Errorf("%s: %v", sc.name, err)
	}
	s.everyoneServed()
	return s.result(began)
}

// work has all clients work until stop is called.
func (s *site) work(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all errgroup.Group
	for _, c := range s.clients {
		all.Go(func() error { return c.work(ctx, s) })
	}
	return func() {
		cancel()
		if err := all.Wait(); err != nil {
			s.t.Error(err)
		}
	}
}

// start starts the servers.
func (sc scenario) start(ctx context.Context, t *testing.T) *site {
	t.Helper()
	options := append([]zktest.RealOption{zktest.Servers(voters), zktest.TickTime(tick), zktest.MaxSessionTimeout(20 * tick)}, sc.options...)
	s := &site{Ensemble: zktest.StartReal(t, options...), t: t, referee: referee.New()}
	servers := sc.servers
	if servers == nil {
		all := make([]int, s.Len())
		for i := range all {
			all[i] = i
		}
		servers = func(int) []int { return all }
	}
	s.clients = newClients(servers)
	if err := s.inQuorum(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) connect(ctx context.Context) {
	s.t.Helper()
	var all errgroup.Group
	for i, c := range s.clients {
		all.Go(func() error { return c.connect(ctx, s, pathOf(i)) })
	}
	if err := all.Wait(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) closeClients() {
	var all sync.WaitGroup
	for _, c := range s.clients {
		if c.manager != nil {
			all.Go(func() { _ = c.manager.Close() }) // its server may be gone
		}
	}
	all.Wait()
}

func (s *site) granted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants = append(s.grants, time.Now())
}

func (s *site) grantCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.grants)
}

// everyoneServed waits until every client has got its lock once more.
func (s *site) everyoneServed() {
	s.t.Helper()
	since := time.Now().UnixNano()
	late := func() (names []string) {
		for _, c := range s.clients {
			if c.served.Load() < since {
				names = append(names, c.name)
			}
		}
		return names
	}
	zktest.Eventually(s.t, certainly, "every client to get its lock", func() bool { return len(late()) == 0 })
}

// inQuorum waits until all servers that run serve, and the leader counts all of them.
func (s *site) inQuorum(ctx context.Context) error {
	for {
		err := s.WaitReady(ctx)
		if err == nil {
			if err = s.synced(ctx); err == nil {
				return nil
			}
		}
		if !pause(ctx, askEvery) {
			return err
		}
	}
}

// synced returns an error unless the leader's followers and observers are all servers that run.
func (s *site) synced(ctx context.Context) error {
	leader, err := s.Leader(ctx)
	if err != nil {
		return err
	}
	metrics, err := s.Metrics(ctx, leader)
	if err != nil {
		return err
	}
	running := 0
	for i := range s.Len() {
		if _, err := s.Word(ctx, i, "ruok"); err == nil {
			running++
		}
	}
	followers, _ := strconv.Atoi(metrics["zk_synced_followers"])
	observers, _ := strconv.Atoi(metrics["zk_synced_observers"])
	if followers+observers != running-1 {
		return fmt.Errorf("the leader has %d followers and %d observers, and %d other servers run", followers, observers, running-1)
	}
	return nil
}

// cling waits until some clients have all locks, and hold them until they lose them. letGo ends that.
func (s *site) cling(who func(*client) bool) (letGo func()) {
	s.t.Helper()
	for _, c := range s.clients {
		c.clings.Store(who(c))
	}
	zktest.Eventually(s.t, certainly, "some clients to hold all locks", func() bool {
		n := 0
		s.leases.Range(func(c, lease any) bool {
			if c.(*client).clings.Load() && lease.(*queue.Lease).Err() == nil {
				n++
			}
			return true
		})
		return n == 1+held
	})
	return func() {
		for _, c := range s.clients {
			c.clings.Store(false)
		}
	}
}

// nobodyServed waits for d. No worker may get its lock meanwhile, and in the end no client may hold a
// lock, or believe that it is connected.
func (s *site) nobodyServed(ctx context.Context, d time.Duration) error {
	before := s.grantCount()
	if !pause(ctx, d) {
		return ctx.Err()
	}
	var errs []error
	if n := s.grantCount() - before; n > 0 {
		errs = append(errs, fmt.Errorf("%d locks granted without a quorum", n))
	}
	s.leases.Range(func(c, lease any) bool {
		if lease.(*queue.Lease).Err() == nil {
			errs = append(errs, fmt.Errorf("%s still holds after %v without a quorum", c.(*client).name, d))
		}
		return true
	})
	return errors.Join(errs...)
}

// load returns how many threads of the machine wanted a processor in the last minute, on average. It is 0
// where the system does not tell.
func load() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	n, _ := strconv.ParseFloat(first, 64)
	return n
}
