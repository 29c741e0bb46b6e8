package fiber_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	"golang.org/x/sync/errgroup"

	adapter "github.com/turnstile-go/turnstile/examples/adapters/fiber"
	"github.com/turnstile-go/turnstile/examples/adapters/internal/ensemble"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

func TestMain(m *testing.M) { ensemble.Main(m) }

var _ idempotency.Locker = (*adapter.Locker)(nil)

const (
	header = "X-Idempotency-Key"
	key    = "7e9f6a3c-0000-4000-8000-000000000001"
)

// storage is the one that the replicas share, such as Redis. The middleware calls these two methods.
type storage struct {
	fiber.Storage
	answers sync.Map
}

func (s *storage) GetWithContext(_ context.Context, key string) ([]byte, error) {
	answer, _ := s.answers.Load(key)
	b, _ := answer.([]byte)
	return b, nil
}

func (s *storage) SetWithContext(_ context.Context, key string, answer []byte, _ time.Duration) error {
	s.answers.Store(key, answer)
	return nil
}

// locks returns the locks of a replica.
func locks(t *testing.T, p *ensemble.Process) *zklock.Keyed {
	t.Helper()
	return ensemble.Must(zklock.NewKeyed(p.Manager, "/fiber/"+t.Name()))
}

// replica returns an application whose POST calls the handler.
func replica(answers *storage, l *adapter.Locker, handler fiber.Handler) *fiber.App {
	app := fiber.New(fiber.Config{DisableDefaultDate: true}) // for which fasthttp has a goroutine that never ends
	app.Use(idempotency.New(idempotency.Config{Lock: l, Storage: answers}))
	app.Post("/", handler)
	return app
}

// post sends a request to a replica and returns the answer.
func post(app *fiber.App) (string, error) {
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set(header, key)
	answer, err := app.Test(r, fiber.TestConfig{Timeout: ensemble.Patience})
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return fmt.Sprint(answer.StatusCode, " ", string(text)), err
}

// Fiber's test of its MemoryLock, less its waits.
func TestLocker(t *testing.T) {
	l := adapter.New(queue.WithMaxWait(t.Context(), time.Millisecond), locks(t, ensemble.Start(t)))
	ensemble.OK(t, adapter.New(t.Context(), locks(t, ensemble.Start(t))).Lock("a"))
	if err := l.Lock("a"); !errors.Is(err, queue.ErrMaxWait) {
		t.Errorf("locked again: %v", err)
	}
	l = adapter.New(t.Context(), locks(t, ensemble.Start(t)))
	for range 2 {
		ensemble.OK(t, l.Lock("b"))
		ensemble.OK(t, l.Unlock("b"))
	}
	if err := l.Unlock("c"); !errors.Is(err, zklock.ErrNotHeld) {
		t.Errorf("Unlock of what is not locked: %v", err)
	}
}

// Of ten requests with one key at two replicas, one runs the handler, and all get its answer.
func TestOnce(t *testing.T) {
	var answers storage
	var runs atomic.Int32
	handler := func(c fiber.Ctx) error { return c.SendString(fmt.Sprint("run ", runs.Add(1))) }
	var replicas []*fiber.App
	for range 2 {
		replicas = append(replicas, replica(&answers, adapter.New(t.Context(), locks(t, ensemble.Start(t))), handler))
	}
	var requests errgroup.Group
	for i := range 10 {
		requests.Go(func() error {
			answer, err := post(replicas[i%2])
			if answer != "200 run 1" {
				err = errors.Join(err, errors.New(answer))
			}
			return err
		})
	}
	ensemble.OK(t, requests.Wait())
}

// After a loss in the middle of a handler a request at another replica runs the handler too. The first handler sees the
// loss in its context, and gives up.
func TestLoss(t *testing.T) {
	var answers storage
	process := ensemble.Start(t)
	l := adapter.New(t.Context(), locks(t, process))
	working := make(chan struct{})
	first := replica(&answers, l, func(c fiber.Ctx) error {
		ctx, done := l.Context(c.Context(), c.Get(header))
		defer done()
		close(working)
		<-ctx.Done() // work that looks at its context
		if cause := context.Cause(ctx); !errors.Is(cause, session.ErrLost) {
			t.Errorf("the handler ends with %v", cause)
		}
		return fiber.ErrServiceUnavailable // so the middleware stores no answer
	})
	second := replica(&answers, adapter.New(t.Context(), locks(t, ensemble.Start(t))), func(c fiber.Ctx) error {
		return c.SendString("done")
	})
	var requests errgroup.Group
	requests.Go(func() error {
		answer, err := post(first)
		if answer != "503 Service Unavailable" {
			t.Errorf("the first replica answers %q", answer)
		}
		return err
	})
	ensemble.Wait(t, working, "the handler runs")
	process.Expire(t)
	for range 2 {
		if answer, err := post(second); answer != "200 done" || err != nil {
			t.Errorf("the second replica answers %q, %v", answer, err)
		}
	}
	ensemble.OK(t, requests.Wait())
}
