package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
)

// Ten clients ask for random numbers of leases. Some wait and some try, and some calls are cancelled. There are never more
// leases held than the limit allows, and nothing is left in the end. One client has held all of them before, since chance may
// not bring that about on a busy machine.
func TestNeverMoreThanThereAre(t *testing.T) {
	for _, layout := range layouts {
		t.Run(layout.name, func(t *testing.T) {
			const clients, limit = 10, 5
			each := longtest.Pick(30, 80)
			most := limit
			if layout.opts != nil {
				most = 1
			}
			dir := testserver.Path(t)
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			r := referee{limit: limit}
			var g errgroup.Group
			for i := range clients {
				u := user{
					sem:  newSem(t, connect(t), dir, limit, layout.opts...),
					rand: rand.New(rand.NewPCG(seed, uint64(i))),
					most: most, referee: &r,
				}
				if i == 0 {
					u.takeAll(t, limit)
				}
				g.Go(func() error {
					for range each {
						if err := u.once(patient(t)); err != nil {
							return fmt.Errorf("client %d: %w", i, err)
						}
					}
					return u.releaseAll(patient(t))
				})
			}
			must(t, g.Wait())
			r.check(t)
			testserver.WaitChildren(t, dir+layout.leases, 0)
			testserver.WaitChildren(t, dir+layout.queue, 0)
		})
	}
}

// user is one client. It may hold several leases at a time, but waits only while it holds none. Two clients that hold leases
// and wait for each other's can wait for ever, as with any semaphore.
type user struct {
	sem  *semaphore.Semaphore
	rand *rand.Rand
	most int // leases of one request
	*referee
	held []*queue.Lease
}

// takeAll holds all leases, and releases them.
func (u *user) takeAll(t *testing.T, limit int) {
	for range limit / u.most {
		l, err := u.sem.AcquireN(patient(t), u.most)
		must(t, err)
		u.enter(l, u.most)
		u.held = append(u.held, l)
	}
	must(t, u.releaseAll(patient(t)))
}

func (u *user) once(ctx context.Context) error {
	if len(u.held) > 0 && u.rand.IntN(4) == 0 {
		return u.releaseAll(ctx)
	}
	n := 1 + u.rand.IntN(u.most)
	get := u.sem.TryAcquireN
	if len(u.held) == 0 && u.rand.IntN(4) > 0 {
		get = u.sem.AcquireN
	}
	giveUp := func() {}
	if u.rand.IntN(5) == 0 {
		ctx, giveUp = context.WithTimeout(ctx, time.Duration(u.rand.IntN(int(3*time.Millisecond))))
	}
	defer giveUp()
	l, err := get(ctx, n)
	switch {
	case err == nil:
		u.enter(l, n)
		u.held = append(u.held, l)
	case errors.Is(err, queue.ErrBusy), errors.Is(err, ctx.Err()):
	default:
		return err
	}
	return nil
}

func (u *user) releaseAll(ctx context.Context) error {
	for _, l := range u.held {
		if err := l.Release(ctx); err != nil {
			return err
		}
	}
	u.held = nil
	return nil
}
