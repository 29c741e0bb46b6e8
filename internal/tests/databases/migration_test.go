package databases

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/turnstile-go/turnstile/fence"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zklock"
)

// This file is the recipe for migrations of a database (docs/recipes.md), and migrations_test.go tests it.

// step is one change of the schema, or of the data.
type step func(ctx context.Context, tx *sql.Tx) error

// migrate takes the steps that the database has not taken yet. Each replica calls it when it starts.
func migrate(ctx context.Context, lock *zklock.Mutex, db *sql.DB, d fence.Dialect, steps []step) error {
	return lock.Do(ctx, func(ctx context.Context) error {
		lease, _ := queue.LeaseFrom(ctx)
		token, err := lease.Token(ctx) // before a transaction begins
		if err != nil {
			return err
		}
		for _, table := range []string{d.Schema(), "CREATE TABLE IF NOT EXISTS migration (version INT NOT NULL PRIMARY KEY)"} {
			if _, err := db.ExecContext(ctx, table); err != nil {
				return err
			}
		}
		for {
			if done, err := takeStep(ctx, db, d, token, steps); done || err != nil {
				return err
			}
		}
	})
}

// takeStep takes the next step in a transaction of its own, which writes the new version too.
func takeStep(ctx context.Context, db *sql.DB, d fence.Dialect, token int64, steps []step) (done bool, err error) {
	tx, err := db.BeginTx(ctx, nil) // it is rolled back if the lock is lost
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	if err := d.Claim(ctx, tx, token, "migration"); err != nil { // the first statement
		return false, err
	}
	var version int
	if err := tx.QueryRowContext(ctx, "SELECT COALESCE(MAX(version), 0) FROM migration").Scan(&version); err != nil {
		return false, err
	}
	if version >= len(steps) { // a later release has been here, if it is more
		return true, nil
	}
	if err := steps[version](ctx, tx); err != nil {
		return false, fmt.Errorf("step %d: %w", version+1, err)
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO migration VALUES (%d)", version+1)); err != nil {
		return false, err
	}
	return false, tx.Commit()
}
