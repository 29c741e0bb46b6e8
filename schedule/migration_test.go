package schedule_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The first of five replicas dies in the middle of a migration, which the next one repeats. No replica goes on before it is
// done. A replica of an earlier version goes on at once.
func TestMigration(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect connector) {
		var mu sync.Mutex
		begun, done := 0, false
		var replicas sync.WaitGroup
		for range 5 {
			m := connect()
			replicas.Go(func() {
				err := migrateOnce(t.Context(), m, noon, func(ctx context.Context) error {
					mu.Lock()
					begun++
					first := begun == 1
					mu.Unlock()
					if first {
						s, err := m.Session(ctx)
						if err == nil {
							err = server.Expire(ctx, s.ID())
						}
						return err
					}
					time.Sleep(time.Minute)
					mu.Lock()
					defer mu.Unlock()
					done = true
					return ctx.Err()
				})
				mu.Lock()
				defer mu.Unlock()
				if err == nil && !done || err != nil && !errors.Is(err, session.ErrLost) {
					t.Errorf("a replica goes on with %v", err)
				}
			})
		}
		replicas.Wait()
		if begun != 2 {
			t.Errorf("begun %d times", begun)
		}
		for _, version := range []time.Time{noon, later(-1)} {
			must(t, migrateOnce(t.Context(), connect(), version, func(context.Context) error {
				t.Error("migrated again")
				return nil
			}))
		}
	})
}

// A migration that fails is tried three times, by all replicas together, and keeps all of them from going on. A later
// version is tried anew.
func TestMigrationFails(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect connector) {
		failure := errors.New("disk is full")
		begun, failed, kept := 0, 0, 0
		for range 5 {
			err := migrateOnce(t.Context(), connect(), noon, func(context.Context) error { begun++; return failure })
			switch {
			case errors.Is(err, failure):
				failed++
			case errors.Is(err, errNotMigrated):
				kept++
			}
		}
		if begun != 3 || failed != 3 || kept != 2 {
			t.Errorf("begun %d times, %d replicas have failed and %d were kept from going on", begun, failed, kept)
		}
		must(t, migrateOnce(t.Context(), connect(), later(1), func(context.Context) error { return nil }))
	})
}
