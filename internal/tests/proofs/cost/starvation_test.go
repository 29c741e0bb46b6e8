package cost

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// How long contenders wait at worst while others take the lock again and again.

const (
	// use is how long each holder holds.
	use = 5 * time.Millisecond
	// lazily is for how long places are kept.
	lazily = 10 * time.Second
)

// span is for how long the contenders go on.
func span() time.Duration {
	if raceEnabled || !longtest.On() {
		return time.Second / 2
	}
	return 20 * time.Second
}

// group is some goroutines that do the same, in sessions of their own or in one.
type group struct {
	what     string
	sessions int
	each     int           // goroutines in each session, which share a lock object
	rest     time.Duration // between a release and the next call
	lock     func(*session.Manager) (locker, error)
}

// locker is a lock, or one side of a read-write lock.
type locker interface {
	Lock(context.Context) error
	Unlock() error
}

// reader is the read side.
type reader struct{ *rwlock.RWMutex }

func (r reader) Lock(ctx context.Context) error { return r.RLock(ctx) }
func (r reader) Unlock() error                  { return r.RUnlock() }

func plainMutex(m *session.Manager) (locker, error) { return zklock.New(m, lockPath) }
func plainWriter(m *session.Manager) (locker, error) {
	return rwlock.New(m, lockPath)
}

func plainReader(m *session.Manager) (locker, error) {
	rw, err := rwlock.New(m, lockPath)
	return reader{rw}, err
}

func lazyReader(m *session.Manager) (locker, error) {
	rw, err := rwlock.New(m, lockPath, rwlock.WithLazyRelease(lazily))
	return reader{rw}, err
}

func lazyWriter(m *session.Manager) (locker, error) {
	return rwlock.New(m, lockPath, rwlock.WithLazyRelease(lazily))
}

func lazyMutex(m *session.Manager) (locker, error) {
	return zklock.New(m, lockPath, zklock.WithLazyRelease(lazily))
}

func handedMutex(m *session.Manager) (locker, error) {
	return zklock.New(m, lockPath, zklock.WithLocalHandover(10))
}

// contests are the groups that contend for one lock.
var contests = []struct {
	what   string
	groups []group
	most   time.Duration // that anybody waits
}{
	{"a writer, and readers of 20 processes", []group{
		{"the writer", 1, 1, 20 * time.Millisecond, plainWriter},
		{"the readers", 20, 2, 0, plainReader},
	}, 5 * use},
	{"the same, and the readers keep their places", []group{
		{"the writer", 1, 1, 20 * time.Millisecond, plainWriter},
		{"the readers", 20, 2, 0, lazyReader},
	}, 5 * use},
	{"readers and writers, and 8 writers of one process that hand over while nobody else waits", []group{
		{"the readers", 4, 1, time.Millisecond, plainReader},
		{"the writers", 2, 1, time.Millisecond, plainWriter},
		{"those that hand over", 1, 8, 0, lazyWriter},
	}, 100 * use},
	{"a mutex of two processes, and 8 goroutines of a third that hand over 10 times", []group{
		{"the two", 2, 1, time.Millisecond, plainMutex},
		{"those that hand over", 1, 8, 0, handedMutex},
	}, 100 * use},
	{"a mutex of two processes, and 8 goroutines of a third that hand over while nobody else waits", []group{
		{"the two", 2, 1, time.Millisecond, plainMutex},
		{"those that hand over", 1, 8, 0, lazyMutex},
	}, 100 * use},
}

// waits are the waits of a group.
type waits struct {
	contest, group string
	all            []time.Duration
}

func (w *waits) percentile(p int) time.Duration {
	slices.Sort(w.all)
	return w.all[(len(w.all)-1)*p/100]
}

// contend has all groups contend for a span, and returns the waits of each.
func (w *world) contend(contest string, groups []group) []*waits {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var out []*waits
	until := time.Now().Add(span())
	for _, g := range groups {
		all := &waits{contest: contest, group: g.what}
		out = append(out, all)
		for _, m := range w.managers(g.sessions, longTimeout) {
			l, err := g.lock(m)
			if err != nil {
				w.t.Fatal(err)
			}
			for range g.each {
				wg.Go(func() {
					for time.Now().Before(until) {
						began := time.Now()
						if err := l.Lock(ctx); err != nil {
							w.t.Error(err)
							return
						}
						took := time.Since(began)
						mu.Lock()
						all.all = append(all.all, took)
						mu.Unlock()
						time.Sleep(use)
						if err := l.Unlock(); err != nil {
							w.t.Error(err)
							return
						}
						time.Sleep(g.rest)
					}
				})
			}
		}
	}
	wg.Wait()
	return out
}

// tried is what a caller finds that only tries, while another process uses the lock and does not rest.
type tried struct {
	what  string
	hold  time.Duration
	tries []int           // until the caller has got the lock, each time
	took  []time.Duration // the same, in time
	busy  []time.Duration // how long a try takes to say busy
}

// try has a caller try again and again, until it has got the lock n times.
func (w *world) try(what string, hold time.Duration, lock func(*session.Manager) (locker, error), n int) tried {
	w.t.Helper()
	got := tried{what: what, hold: hold}
	all := w.managers(2, longTimeout)
	l, err := lock(all[0])
	if err != nil {
		w.t.Fatal(err)
	}
	mine, err := zklock.New(all[1], lockPath)
	if err != nil {
		w.t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := l.Lock(w.t.Context()); err != nil {
				w.t.Error(err)
				return
			}
			time.Sleep(hold)
			if err := l.Unlock(); err != nil {
				w.t.Error(err)
				return
			}
		}
	})
	const betweenTries = 10*time.Millisecond + 300*time.Microsecond // no multiple of what else there is
	for i := range n {
		// The place is kept, and used again. Each first try comes at another moment of a hold.
		time.Sleep(time.Second + time.Duration(i)*37*time.Millisecond + 700*time.Microsecond)
		began := time.Now()
		for tries := 1; ; tries++ {
			at := time.Now()
			ok, err := mine.TryLock(w.t.Context())
			if err != nil {
				w.t.Fatal(err)
			}
			if ok {
				got.tries, got.took = append(got.tries, tries), append(got.took, time.Since(began))
				break
			}
			got.busy = append(got.busy, time.Since(at))
			if time.Since(began) > time.Minute {
				w.t.Fatalf("%s: busy for %d tries", what, tries)
			}
			time.Sleep(betweenTries)
		}
		if err := mine.Unlock(); err != nil {
			w.t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	return got
}

// TestStarvation measures how long contenders wait at worst while others take the lock again and again.
func TestStarvation(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, aboutStarvation, oneWay, use, span())
	row(&b, "contenders", "waits of", "acquisitions", "median, ms", "p99, ms", "longest, ms")
	rule(&b, 6)
	for _, c := range contests {
		t.Run(c.what, func(t *testing.T) {
			bubble(t, func(w *world) {
				for _, ws := range w.contend(c.what, c.groups) {
					median, p99, longest := ws.percentile(50), ws.percentile(99), ws.percentile(100)
					t.Logf("%s: %d acquisitions, %v, %v, %v", ws.group, len(ws.all), median, p99, longest)
					row(&b, ws.contest, ws.group, len(ws.all), millis(median), millis(p99), millis(longest))
					if longest > c.most {
						t.Errorf("%s wait for %v, want at most %v", ws.group, longest, c.most)
					}
				}
			})
		})
	}
	fmt.Fprint(&b, aboutTries)
	row(&b, "the other process", "holds for, ms", "most tries", "longest until the lock, ms", "longest busy, ms")
	rule(&b, 5)
	for _, c := range []struct {
		what string
		hold time.Duration
		lock func(*session.Manager) (locker, error)
	}{
		{"ordinary mutex", time.Millisecond, plainMutex},
		{"ordinary mutex", 20 * time.Millisecond, plainMutex},
		{"WithLazyRelease", time.Millisecond, lazyMutex},
		{"WithLazyRelease", 20 * time.Millisecond, lazyMutex},
		{"WithLazyRelease", 200 * time.Millisecond, lazyMutex},
		{"WithLazyRelease", time.Second, lazyMutex},
	} {
		t.Run(fmt.Sprint("try/", c.what, "/", c.hold), func(t *testing.T) {
			bubble(t, func(w *world) {
				got := w.try(c.what, c.hold, c.lock, 30)
				most, took, busy := slices.Max(got.tries), slices.Max(got.took), time.Duration(0)
				if len(got.busy) > 0 {
					busy = slices.Max(got.busy)
				}
				t.Logf("at most %d tries, %v; busy after %v at most", most, took, busy)
				row(&b, c.what, millis(c.hold), most, millis(took), millis(busy))
			})
		})
	}
	switch {
	case !*write:
		return
	case t.Failed() || span() < 20*time.Second:
		t.Error("not written: -write is for all of TestStarvation, passed, without -race, and as a long test")
		return
	}
	if err := report.Section("../../../../docs/measured/starvation.md", "starvation", b.String()); err != nil {
		t.Error(err)
	}
}

const aboutStarvation = `Made in virtual time, where every frame takes %v each way and nothing else takes any time
([internal/tests/proofs/cost](../../internal/tests/proofs/cost)). Every holder holds for %v and, unless the first column says
otherwise, calls again at once. A writer rests for 20 ms between two locks, the other processes for 1 ms. Each row goes on for %v.

`

const aboutTries = `
## A caller that only tries

One process locks, holds, unlocks, and locks again at once. Another calls TryLock every 10 ms until it gets the lock, 30 times.

`

func millis(d time.Duration) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)), ".0")
}
