package election_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// runs notes which ticks have begun and ended, in all replicas.
type runs struct {
	mu           sync.Mutex
	began, ended map[string]int
}

func newRuns() *runs { return &runs{began: make(map[string]int), ended: make(map[string]int)} }

func (r *runs) note(which map[string]int, tick time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	which[name(tick)]++
	return which[name(tick)]
}

// orders are the two ways to run a job, and what they promise of a tick whose replica dies in the middle.
var orders = map[string]struct {
	run   func(*schedule, context.Context, time.Time, func(context.Context) error) error
	again bool // it runs again
}{
	"at most once":  {(*schedule).atMostOnce, false},
	"at least once": {(*schedule).atLeastOnce, true},
}

// Each of several replicas fires at each tick of its own clock. The job runs once at each tick. At some
// ticks the replica that runs the job loses its session in the middle, as if its process had died.
func TestOncePerTick(t *testing.T) {
	ticks := longtest.Pick(15, 60)
	const (
		replicas = 4
		every    = time.Minute
		dies     = 7 // at every seventh tick
	)
	for what, order := range orders {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *zktest.Server, connect func() *session.Manager) {
				r := newRuns()
				start := time.Now().Truncate(every).Add(every)
				var all sync.WaitGroup
				for i := range replicas {
					m := connect()
					s, err := newSchedule(m, "/jobs/report")
					must(t, err)
					// The clocks are a quarter of a second apart, and so are the replicas at a tick.
					skew := time.Duration(i-replicas/2) * 250 * time.Millisecond
					all.Go(func() {
						for n := range ticks {
							tick := start.Add(time.Duration(n) * every)
							time.Sleep(time.Until(tick.Add(skew)))
							err := order.run(s, t.Context(), tick, func(ctx context.Context) error {
								if r.note(r.began, tick) == 1 && n%dies == 0 {
									live, err := m.Session(ctx)
									if err != nil {
										return err
									}
									if err := server.Expire(ctx, live.ID()); err != nil {
										return err
									}
								}
								select { // the job takes longer than the clocks are apart
								case <-time.After(2 * time.Second):
								case <-ctx.Done():
									return ctx.Err()
								}
								r.note(r.ended, tick)
								return nil
							})
							if err != nil && !errors.Is(err, session.ErrLost) {
								t.Errorf("tick %d: %v", n, err)
							}
						}
					})
				}
				all.Wait()
				for n := range ticks {
					tick := name(start.Add(time.Duration(n) * every))
					began, ended := 1, 1
					switch {
					case n%dies == 0 && order.again:
						began = 2
					case n%dies == 0:
						ended = 0
					}
					if r.began[tick] != began || r.ended[tick] != ended {
						t.Errorf("tick %d began %d times and ended %d times, want %d and %d",
							n, r.began[tick], r.ended[tick], began, ended)
					}
				}
			})
		})
	}
}

// The same on the shared server, where all replicas fire at once.
func TestOncePerTickAtOnce(t *testing.T) {
	for what, order := range orders {
		t.Run(what, func(t *testing.T) {
			dir := testserver.Path(t) + "/jobs/report" // nothing of it is there
			var replicas []*schedule
			for range 4 {
				s, err := newSchedule(connect(t), dir)
				must(t, err)
				replicas = append(replicas, s)
			}
			r := newRuns()
			tick := time.Now()
			for range 10 {
				tick = tick.Add(time.Minute)
				ctx := patient(t)
				var g errgroup.Group
				for _, s := range replicas {
					g.Go(func() error {
						return order.run(s, ctx, tick, func(context.Context) error {
							r.note(r.began, tick)
							return nil
						})
					})
				}
				must(t, g.Wait())
				if n := r.began[name(tick)]; n != 1 {
					t.Errorf("it ran %d times", n)
				}
			}
		})
	}
}

// A replica whose node was deleted while the job ran cannot mark the tick, even if it does not look at its
// context.
func TestMarkIsGuarded(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s, err := newSchedule(connect(t), dir)
	must(t, err)
	tick := time.Now()
	err = s.lock.Do(ctx, func(inside context.Context) error {
		version, due, err := s.due(inside, tick)
		if err != nil || !due {
			t.Errorf("due %v, %v", due, err)
		}
		names := testserver.Children(t, dir+"/lock")
		testserver.Delete(t, dir+"/lock", names[0])
		return s.mark(context.WithoutCancel(inside), tick, version)
	})
	if !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, session.ErrLost) {
		t.Errorf("Do: %v", err)
	}
	if _, due, err := s.due(ctx, tick); !due || err != nil {
		t.Errorf("due after a mark without the lock: %v, %v", due, err)
	}
}

// The code on the page is the code that is tested here.
func TestRecipePage(t *testing.T) {
	page, err := os.ReadFile("../docs/recipes.md")
	must(t, err)
	code, err := os.ReadFile("example_oncepertick_test.go")
	must(t, err)
	_, section, ok := strings.Cut(string(page), "## Once per schedule\n")
	if !ok {
		t.Fatal("the page has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := strings.Split(section, "```go\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("the section has no code")
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(string(code), block) {
			t.Errorf("the example does not have this:\n%s", block)
		}
	}
}
