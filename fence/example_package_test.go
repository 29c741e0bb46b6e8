package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"log"

	"github.com/turnstile-go/turnstile/fence"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// A payment under a lock. The program imports a driver, such as github.com/jackc/pgx/v5/stdlib.
func Example() {
	ctx := context.Background()
	db, err := sql.Open("pgx", "postgres://localhost/billing")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, fence.PostgreSQL.Schema()); err != nil { // once: put it among your migrations
		log.Fatal(err)
	}
	m, err := session.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	lock, err := zklock.New(m, "/locks/invoice-42")
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(ctx, func(ctx context.Context) error {
		lease, _ := queue.LeaseFrom(ctx)
		token, err := lease.Token(ctx) // before the transaction begins
		if err != nil {
			return err
		}
		return pay(ctx, db, token)
	})
	if errors.Is(err, fence.ErrStale) {
		log.Print("nothing was paid: another process holds the lock")
	}
}

// pay pays 10 of an invoice. Its transaction is rolled back if ctx ends, and so if the lock is lost.
func pay(ctx context.Context, db *sql.DB, token int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fence.PostgreSQL.Claim(ctx, tx, token, "invoice-42"); err != nil { // the first statement
		return err // matches fence.ErrStale if a later holder has been here
	}
	var open int
	if err := tx.QueryRowContext(ctx, "SELECT open FROM invoice WHERE id = 42").Scan(&open); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE invoice SET open = $1 WHERE id = 42", open-10); err != nil {
		return err
	}
	return tx.Commit()
}
