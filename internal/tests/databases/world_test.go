package databases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/fence"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// world is a database at one isolation level. It has an account, of which holders of a lock take one away.
type world struct {
	*testing.T
	db      *sql.DB
	dialect fence.Dialect
	level   sql.IsolationLevel
	account string
	again   func(error) bool // reports whether a transaction can be run once more
	waiting string           // counts the statements that wait for a lock
	file    string           // of SQLite
	store   store
}

// store is a way to keep tokens.
type store struct {
	name  string
	claim func(ctx context.Context, tx *sql.Tx, token int64, account string) error
}

// balance is what each account begins with.
const balance = 10

var accounts atomic.Int64

// levels are the isolation levels of PostgreSQL and MySQL.
var levels = []sql.IsolationLevel{
	sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable,
}

// stores are those of package fence: a table of its own, one with another name, and a column of the account's table.
func stores(t *testing.T, d fence.Dialect) []store {
	t.Helper()
	column, err := d.Column("account", "id", "token")
	must(t, err)
	return []store{
		{"table", d.Claim},
		{"column", func(ctx context.Context, tx *sql.Tx, token int64, account string) error {
			return column.Claim(ctx, tx, token, account)
		}},
	}
}

// worlds runs a test in each database, at each level, with each store.
func worlds(t *testing.T, test func(w *world)) {
	each(t, func(w *world) {
		for _, s := range stores(w.T, w.dialect) {
			w.run(s.name, func(w *world) {
				w.store = s
				w.open(balance)
				test(w)
			})
		}
	})
}

// each runs a test in each database at each level.
func each(t *testing.T, test func(w *world)) {
	t.Run("PostgreSQL", func(t *testing.T) {
		w := &world{T: t, db: postgres.open(t), dialect: fence.PostgreSQL, again: postgresAgain, waiting: waitingInPostgres}
		w.levels(test)
	})
	t.Run("MariaDB", func(t *testing.T) {
		w := &world{T: t, db: mariadb.open(t), dialect: fence.MySQL, again: mariadbAgain, waiting: waitingInMariaDB}
		w.levels(test)
		w.run("snapshot isolation", func(w *world) {
			db, err := sql.Open("mysql", mariadb.source(mariadb.dir)+"?innodb_snapshot_isolation=ON")
			must(w.T, err)
			defer db.Close()
			w.db, w.level = db, sql.LevelRepeatableRead
			test(w)
		})
	})
	for _, mode := range []string{"delete", "wal"} {
		for _, begin := range []string{"deferred", "immediate"} {
			t.Run("SQLite/"+mode+" "+begin, func(t *testing.T) {
				w := &world{T: t, dialect: fence.SQLite, again: sqliteAgain}
				w.db, w.file = openSQLite(t, url.Values{"_pragma": {"journal_mode(" + mode + ")"}, "_txlock": {begin}})
				test(w)
			})
		}
	}
}

func (w *world) levels(test func(w *world)) {
	for _, level := range levels {
		w.run(level.String(), func(w *world) {
			w.level = level
			test(w)
		})
	}
}

// run runs a part of the test in a copy of the world.
func (w *world) run(name string, test func(w *world)) {
	w.T.Run(name, func(t *testing.T) {
		part := *w
		part.T = t
		test(&part)
	})
}

// open opens a new account, which no holder has claimed yet.
func (w *world) open(n int) {
	w.Helper()
	w.account = fmt.Sprintf("account-%d", accounts.Add(1))
	w.exec("INSERT INTO account (id, balance) VALUES (?, ?)", w.account, n)
}

func (w *world) exec(query string, args ...any) {
	w.Helper()
	_, err := w.db.ExecContext(within(w.T), w.sql(query), args...)
	must(w.T, err)
}

// sql returns a statement as the database wants it.
func (w *world) sql(query string) string {
	for n := 1; w.dialect == fence.PostgreSQL && strings.Contains(query, "?"); n++ {
		query = strings.Replace(query, "?", fmt.Sprintf("$%d", n), 1)
	}
	return query
}

// want checks the balance of the account.
func (w *world) want(n int) {
	w.Helper()
	var got int
	must(w.T, w.db.QueryRowContext(within(w.T), w.sql("SELECT balance FROM account WHERE id = ?"), w.account).Scan(&got))
	if got != n {
		w.Errorf("the balance is %d, want %d", got, n)
	}
}

// stale checks the error of a claim.
func (w *world) stale(err error) {
	w.Helper()
	if !errors.Is(err, fence.ErrStale) {
		w.Errorf("got %v, want %v", err, fence.ErrStale)
	}
}

// waits waits until a statement waits for a lock, which another transaction has. SQLite does not tell: there it checks
// that the other transaction has the lock.
func (w *world) waits() {
	w.Helper()
	if w.dialect == fence.SQLite {
		if !sqliteLocked(w.T, w.file) {
			w.Errorf("%s is not locked", filepath.Base(w.file))
		}
		return
	}
	ctx := within(w.T)
	zktest.Eventually(w.T, testserver.Patience, "a claim waits", func() bool {
		var n int
		must(w.T, w.db.QueryRowContext(ctx, w.waiting).Scan(&n))
		return n > 0
	})
}
