package schedule_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// The first of five replicas dies in the middle of a migration, which the next one repeats. No replica goes on before it is
// done. A replica of an earlier version goes on at once. A later version is tried three times, by all replicas together, and
// keeps all of them from going on. The one after it is tried anew.
func TestMigration(t *testing.T) {
	inBubble(t, func(t *world) {
		begun, done := 0, false
		var replicas sync.WaitGroup
		for range 5 {
			m := t.connect()
			replicas.Go(func() {
				err := migrateOnce(t.Context(), m, noon, func(ctx context.Context) error {
					if begun++; begun == 1 {
						return t.expire(m)
					}
					time.Sleep(time.Minute)
					done = true
					return ctx.Err()
				})
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
			must(t, migrateOnce(t.Context(), t.connect(), version, func(context.Context) error {
				t.Error("migrated again")
				return nil
			}))
		}
		for _, want := range []error{errWork, errWork, errWork, errNotMigrated, errNotMigrated} {
			wantErr(t, "a replica", migrateOnce(t.Context(), t.connect(), later(1), func(context.Context) error { return errWork }), want)
		}
		must(t, migrateOnce(t.Context(), t.connect(), later(2), func(context.Context) error { return nil }))
	})
}
