package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/turnstile-go/turnstile/fence"
)

// store is a store that is no SQL database. It can compare the token and write in one step, here under a mutex, so it
// is fenced in ten lines.
type store struct {
	mu    sync.Mutex
	token int64 // the highest that has claimed
	open  int
}

// update calls f with what the store has, and writes what f returns.
func (s *store) update(token int64, f func(open int) int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token < s.token { // an equal token is the same holder, which may write again
		return fmt.Errorf("token %d: %w: token %d has claimed it", token, fence.ErrStale, s.token)
	}
	s.token = token
	s.open = f(s.open) // f reads behind the claim, and nobody else writes before it has returned
	return nil
}

// A store of one's own follows the same rule: claim, read and write in one step, and refuse only lower tokens.
func Example_store() {
	s := &store{open: 30}
	pay := func(open int) int { return open - 10 }
	fmt.Println("A, token 41:", s.update(41, pay))
	fmt.Println("A, token 41:", s.update(41, pay))
	// A's lock expires, and B gets it.
	fmt.Println("B, token 42:", s.update(42, pay))
	err := s.update(41, pay) // A does not know yet
	fmt.Println(err)
	fmt.Println("stale:", errors.Is(err, fence.ErrStale), "- open:", s.open)
	// Output:
	// A, token 41: <nil>
	// A, token 41: <nil>
	// B, token 42: <nil>
	// token 41: a later holder has claimed it, or the ZooKeeper servers were wiped: token 42 has claimed it
	// stale: true - open: 0
}

// A transaction that the database has ended for no fault of its own runs again, with the same token, as long as the lock
// is held. These are the errors of PostgreSQL. Its drivers pgx and pq have the method SQLState.
func Example_retry() {
	again := func(err error) bool {
		var e interface{ SQLState() string }
		return errors.As(err, &e) && (e.SQLState() == "40001" || e.SQLState() == "40P01")
	}
	payAgain := func(ctx context.Context, db *sql.DB, token int64) error { // ctx ends with the lock
		for {
			err := pay(ctx, db, token) // as in the package's example: begins, claims, reads, writes, commits
			if !again(err) || ctx.Err() != nil {
				return err
			}
		}
	}
	_ = payAgain
}

// The tokens can be in a column of the table that is written to.
func ExampleDialect_Column() {
	stock, err := fence.PostgreSQL.Column("stock", "id", "token") // once, for the process
	if err != nil {
		log.Fatal(err)
	}
	sell := func(ctx context.Context, tx *sql.Tx, token int64, id string) error {
		if err := stock.Claim(ctx, tx, token, id); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "UPDATE stock SET pieces = pieces - 1 WHERE id = $1", id)
		return err
	}
	_ = sell
}

// The statement that creates the table, for your migrations.
func ExampleDialect_Schema() {
	fmt.Println(fence.SQLite.Schema())
	// Output:
	// CREATE TABLE IF NOT EXISTS turnstile_fence (resource TEXT PRIMARY KEY, token INTEGER NOT NULL)
}
