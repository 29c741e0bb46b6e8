// Package goose migrates a database with github.com/pressly/goose/v3, in one of many replicas.
//
// goose takes a lock by its interfaces lock.Locker and lock.SessionLocker. They cannot end a migration: it goes on, and is
// committed, after the lock is lost and while another replica migrates. Its Up reports the loss when all is done. [Up]
// calls goose inside a Do in place of that. Then the context of the migrations ends with the lock, and database/sql rolls
// back the transaction that is open.
//
// What is left is a replica that stands still in the middle of a transaction and does not notice. [Fenced] is for that, in
// migrations in Go. A migration in SQL cannot have a claim. If the database has a lock of its own, give that to goose
// beside Up: goose.WithSessionLocker with lock.NewPostgresSessionLocker holds off other replicas until the connection of
// the one that stands still is closed. Migrations without a transaction, and all those of MySQL, which commits before and
// after each change of a schema, can be done in part after a loss. They should be one statement that can be repeated.
package goose

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"

	"github.com/turnstile-go/turnstile/fence"
	"github.com/turnstile-go/turnstile/queue"
)

// Locker is a zklock.Mutex, or any other lock of turnstile.
type Locker interface {
	Do(ctx context.Context, f func(context.Context) error) error
}

// Up applies all migrations that are missing while it holds the lock. The other replicas wait in Up, and find nothing to
// do then. If the lock is lost the error matches session.ErrLost, and the migration that was under way is rolled back.
func Up(ctx context.Context, lock Locker, p *goose.Provider) (results []*goose.MigrationResult, err error) {
	err = lock.Do(ctx, func(ctx context.Context) error {
		results, err = p.Up(ctx)
		return err
	})
	return results, err
}

// ErrMeanwhile is returned by a migration that another replica has applied since goose has looked. Call Up again.
var ErrMeanwhile = errors.New("another replica has applied the migration meanwhile")

// Fenced returns a function for goose.NewGoMigration. Its transaction begins with a claim of package fence, which refuses a
// former holder, also one that stood still. Behind the claim it looks at the versions again. Run the statement
// Schema of the dialect before. table is goose.DefaultTablename, unless the provider has another one.
func Fenced(d fence.Dialect, table string, version int64, f func(context.Context, *sql.Tx) error) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		lease, ok := queue.LeaseFrom(ctx)
		if !ok {
			return errors.New("not called by Up, with a lock that has a fencing token")
		}
		token, err := lease.Token(ctx)
		if err != nil {
			return err
		}
		if err := d.Claim(ctx, tx, token, table); err != nil {
			return err
		}
		var applied int
		query := fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE version_id = %d", table, version)
		if err := tx.QueryRowContext(ctx, query).Scan(&applied); err != nil {
			return err
		}
		if applied > 0 {
			return ErrMeanwhile
		}
		return f(ctx, tx)
	}
}
