package versions_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/conformance/versions/driver"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// A seat is a process that is replaced when it was killed.
type seat struct {
	version version
	mu      sync.Mutex // held while the process is replaced
	p       *process
	lives   int
}

func (s *seat) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p
}

// sit gives the seat a new process, and kills the one that it has.
func (s *seat) sit(t *testing.T, a *arena, number int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p != nil {
		s.p.kill()
	}
	s.lives++
	s.p = a.start(t, s.version, fmt.Sprintf("%s %d, life %d", s.version, number, s.lives))
}

// A worker takes locks in the process of a seat, one after another.
type worker struct {
	*seat
	what   string
	locks  []driver.Lock
	served atomic.Int64
}

// mostWork is how long a lock is held at most: long enough for others to come.
const mostWork = 8 * time.Millisecond

// run works until stop is closed. Some of its requests are tries. It returns an error that no attack explains.
func (w *worker) run(stop <-chan struct{}) error {
	expected := []string{"", "busy", gonePast, "lost"}
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		default:
		}
		ask, lock := w.process().begin, w.locks[i%len(w.locks)]
		if i%4 == 3 && lock.Kind != "election" {
			ask = w.process().tries
		}
		k := ask(lock)
		a := <-k.answer
		if a.Reason == "" {
			h := k.enter(a)
			w.served.Add(1)
			<-time.After(rand.N(mostWork)) // the work
			a = h.end()
		}
		if !slices.Contains(expected, a.Reason) {
			return fmt.Errorf("%s: %+v", k, a)
		}
	}
}

// work returns what the workers of a process do. Those of several processes differ in where they begin.
func work(dir string, number int) map[string][]driver.Lock {
	var mutex, several, write []driver.Lock
	for _, kind := range []string{"mutex", "lazy", "local", "async", "lazy local"} {
		for _, way := range []string{"", "do", "lock"} {
			mutex = append(mutex, driver.Lock{Kind: kind, Path: dir + "/m", Way: way})
		}
	}
	mutex = append(mutex, driver.Lock{Kind: "keyed", Path: dir, Key: "m"},
		driver.Lock{Kind: "multi", Path: dir + "/m", Others: []string{dir + "/x"}})
	for _, p := range [][]string{{"x", "y"}, {"y", "z"}, {"z", "x"}} {
		several = append(several, driver.Lock{Kind: "multi", Path: dir + "/" + p[0], Others: []string{dir + "/" + p[1]}},
			driver.Lock{Kind: "mutex", Path: dir + "/" + p[1]})
	}
	for _, kind := range []string{"write", "read", "lazy read", "read", "lazy write", "read"} {
		write = append(write, driver.Lock{Kind: kind, Path: dir + "/rw"})
	}
	all := map[string][]driver.Lock{
		"mutex": mutex, "several": several, "reads and writes": write,
		"leases": {
			{Kind: "semaphore", Path: dir + "/s", Leases: 3},
			{Kind: "semaphore", Path: dir + "/s", Leases: 3, N: 2},
			{Kind: "semaphore", Path: dir + "/s", Leases: 3, Way: "do"},
		},
		"Curator's leases": {{Kind: "curator", Path: dir + "/c", Leases: 2}},
		"election":         {{Kind: "election", Path: dir + "/e"}},
	}
	for what, locks := range all {
		n := number % len(locks)
		all[what] = append(locks[n:len(locks):len(locks)], locks[:n]...)
	}
	return all
}

// Six processes of both versions contend for locks of all kinds, while sessions are ended, connections are cut, and
// processes are killed. At no time do two hold what only one may hold, and after each attack all are served.
func TestContention(t *testing.T) {
	t.Parallel()
	a := newArena(t, shortSession)
	var seats []*seat
	for i := range 6 {
		s := &seat{version: []version{old, present}[i%2]}
		s.sit(t, a, i)
		seats = append(seats, s)
	}
	var workers []*worker
	for i, s := range seats {
		for what, locks := range work(a.path, i) {
			workers = append(workers, &worker{seat: s, what: fmt.Sprintf("%s of %s %d", what, s.version, i), locks: locks})
		}
	}
	working, failed := make(chan struct{}), make(chan error, len(workers))
	stop := sync.OnceFunc(func() { close(working) })
	defer stop() // of a test that has failed, too
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() {
			if err := w.run(working); err != nil {
				failed <- err
			}
		})
	}
	served := func(after string) {
		t.Helper()
		const times = 3
		want := make([]int64, len(workers))
		for i, w := range workers {
			want[i] = w.served.Load() + times
		}
		for i, w := range workers {
			zktest.Eventually(t, testserver.Patience, "after "+after+", this worker is served: "+w.what, func() bool {
				select {
				case err := <-failed:
					t.Fatal(err)
				default:
				}
				return w.served.Load() >= want[i]
			})
		}
	}
	served("the start")
	for i, s := range seats[:4] {
		a.expire(t, s.process())
		served("the end of a session")
		for _, s := range seats {
			s.process().proxy.Disconnect()
		}
		served("a cut of all connections")
		if i < 2 {
			s.sit(t, a, i)
			served("the end of a process")
		}
	}
	stop()
	all.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
}

// expire ends the session of a process, as an operator would.
func (a *arena) expire(t *testing.T, p *process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testserver.Patience)
	defer cancel()
	session := func() int64 {
		id, err := strconv.ParseInt(p.ask(t, driver.Request{Verb: "session"}).Value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	last := session()
	a.Forgive(p.name)
	if err := p.proxy.Expire(ctx, last); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, testserver.Patience, p.name+" has another session", func() bool { return session() != last })
	a.Trust(p.name)
}
