package databases

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/fence"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// replica is a process that migrates when it starts.
type replica struct {
	m    *session.Manager
	lock *zklock.Mutex
}

func newReplica(t *testing.T, server *zktest.Server) *replica {
	t.Helper()
	m := testserver.Connect(t, server.ConnectString())
	lock, err := zklock.New(m, "/migrations/billing")
	must(t, err)
	return &replica{m, lock}
}

// migrations runs a test in each database, in which no step was taken.
func migrations(t *testing.T, test func(t *testing.T, db *sql.DB, d fence.Dialect)) {
	empty := func(t *testing.T, db *sql.DB) {
		for _, table := range []string{"migration", "taken"} {
			_, err := db.ExecContext(within(t), "DROP TABLE IF EXISTS "+table)
			must(t, err)
		}
		_, err := db.ExecContext(within(t), "DELETE FROM turnstile_fence WHERE resource = 'migration'")
		must(t, err)
	}
	for d, open := range map[fence.Dialect]func(t *testing.T) *sql.DB{
		fence.PostgreSQL: postgres.open,
		fence.MySQL:      mariadb.open,
		fence.SQLite: func(t *testing.T) *sql.DB {
			db, _ := openSQLite(t, url.Values{"_pragma": {"journal_mode(wal)"}})
			return db
		},
	} {
		t.Run(d.String(), func(t *testing.T) {
			db := open(t)
			empty(t, db)
			test(t, db, d)
		})
	}
}

// statement is a step of one statement. It is one that does no harm if it is repeated after the database has kept it
// without the version, as MariaDB does with changes of the schema.
func statement(text string) step {
	return func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, text)
		return err
	}
}

var (
	makeTable = statement("CREATE TABLE IF NOT EXISTS taken (n INT NOT NULL)")
	takeOne   = statement("INSERT INTO taken VALUES (1)")
)

// wantTaken checks how many steps but the first were taken.
func wantTaken(t *testing.T, db *sql.DB, n int) {
	t.Helper()
	var got int
	must(t, db.QueryRowContext(within(t), "SELECT COUNT(*) FROM taken").Scan(&got))
	if got != n {
		t.Errorf("%d steps were taken, want %d", got, n)
	}
}

// Five replicas start at once, and each step is taken once.
func TestMigrationOnce(t *testing.T) {
	migrations(t, func(t *testing.T, db *sql.DB, d fence.Dialect) {
		server := zktest.Start(t)
		var g errgroup.Group
		for range 5 {
			r := newReplica(t, server)
			g.Go(func() error { return migrate(within(t), r.lock, db, d, []step{makeTable, takeOne, takeOne, takeOne}) })
		}
		must(t, g.Wait())
		wantTaken(t, db, 3)
	})
}

// A replica that is cut off in the middle of a step leaves nothing of it, and the next one takes the step. A step that
// fails is taken when it has been mended.
func TestMigrationInterrupted(t *testing.T) {
	migrations(t, func(t *testing.T, db *sql.DB, d fence.Dialect) {
		server := zktest.Start(t)
		a, b := newReplica(t, server), newReplica(t, server)
		cut := func(ctx context.Context, tx *sql.Tx) error {
			if err := takeOne(ctx, tx); err != nil {
				return err
			}
			s, err := a.m.Session(ctx)
			if err == nil {
				err = server.Expire(ctx, s.ID())
			}
			if err != nil {
				return err
			}
			<-ctx.Done()
			return nil // as a careless program does
		}
		if err := migrate(within(t), a.lock, db, d, []step{makeTable, cut}); !errors.Is(err, session.ErrLost) {
			t.Errorf("a replica that was cut off: %v", err)
		}
		wantTaken(t, db, 0)
		failure := errors.New("a row that nobody expected")
		fails := func(ctx context.Context, tx *sql.Tx) error { return errors.Join(takeOne(ctx, tx), failure) }
		for range 2 {
			if err := migrate(within(t), b.lock, db, d, []step{makeTable, takeOne, fails}); !errors.Is(err, failure) {
				t.Errorf("a step that fails: %v", err)
			}
			wantTaken(t, db, 1)
		}
		must(t, migrate(within(t), b.lock, db, d, []step{makeTable, takeOne, takeOne}))
		wantTaken(t, db, 2)
		must(t, migrate(within(t), b.lock, db, d, []step{makeTable})) // an earlier release
	})
}
