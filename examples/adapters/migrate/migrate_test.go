package migrate_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	migratesqlite "github.com/golang-migrate/migrate/v4/database/sqlite"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"modernc.org/sqlite"

	"github.com/turnstile-go/turnstile/examples/adapters/internal/ensemble"
	adapter "github.com/turnstile-go/turnstile/examples/adapters/migrate"
	"github.com/turnstile-go/turnstile/fence"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// pause is what the function pause() of the database does.
var pause func()

func TestMain(m *testing.M) {
	sqlite.MustRegisterScalarFunction("pause", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		pause()
		return int64(1), nil
	})
	ensemble.Main(m)
}

func migrations(t *testing.T) source.Driver {
	t.Helper()
	return ensemble.Must(iofs.New(fstest.MapFS{
		"1_invoice.up.sql": {Data: []byte("CREATE TABLE invoice (id INTEGER PRIMARY KEY, state INTEGER); INSERT INTO invoice VALUES (1, pause());")},
		"2_state.up.sql":   {Data: []byte("UPDATE invoice SET state = 10 * state;")},
	}, "."))
}

// open opens a database that several replicas can have open.
func open(t *testing.T, file string) adapter.Database {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(20000)")
	ensemble.OK(t, err)
	t.Cleanup(func() { db.Close() })
	_, err = db.ExecContext(t.Context(), fence.SQLite.Schema())
	ensemble.OK(t, err)
	drv, err := migratesqlite.WithInstance(db, &migratesqlite.Config{})
	ensemble.OK(t, err)
	return adapter.Database{DB: db, Dialect: fence.SQLite, Driver: drv, Table: migratesqlite.DefaultMigrationsTable}
}

// isAt checks the version, and what the migrations have left.
func isAt(t *testing.T, d adapter.Database, want, wantState int) {
	t.Helper()
	version, dirty, err := d.Driver.Version()
	if err != nil || version != want || dirty {
		t.Errorf("version %d, dirty %v, %v, want %d", version, dirty, err, want)
	}
	var state int
	if err := d.DB.QueryRowContext(t.Context(), "SELECT state FROM invoice").Scan(&state); wantState == 0 && err == nil || state != wantState {
		t.Errorf("state %d, %v, want %d", state, err, wantState)
	}
}

// hold has pause() wait until goOn is closed, the first time.
func hold() (begun, goOn chan struct{}) {
	begun, goOn = make(chan struct{}), make(chan struct{})
	pause = func() {
		pause = func() {}
		close(begun)
		<-goOn
	}
	return begun, goOn
}

// locking is a driver whose lock is the obvious one.
type locking struct {
	database.Driver
	mutex *zklock.Mutex
}

func (l locking) Lock() error   { return l.mutex.Lock(context.Background()) }
func (l locking) Unlock() error { return l.mutex.Unlock() }

// With the lock of the driver a migration goes on after the loss, beside the next holder, and is committed.
func TestDriverGoesOnAfterLoss(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "x.db"))
	first, second := ensemble.Start(t), ensemble.Start(t)
	begun, goOn := hold()
	m := ensemble.Must(migrate.NewWithInstance("source", migrations(t), "database",
		locking{d.Driver, ensemble.Must(zklock.New(first.Manager, "/migrate/driver"))}))
	m.LockTimeout = ensemble.Patience
	ended := make(chan error, 1)
	go func() { ended <- m.Up() }()
	ensemble.Wait(t, begun, "the migration has begun")
	first.Expire(t)
	next := ensemble.Must(zklock.New(second.Manager, "/migrate/driver"))
	ensemble.OK(t, next.Lock(t.Context()))
	close(goOn)
	if err := ensemble.Wait(t, ended, "Up has returned"); !errors.Is(err, session.ErrLost) {
		t.Errorf("Up: %v, want a loss", err)
	}
	if !next.Held() {
		t.Error("the next holder has lost the lock")
	}
	isAt(t, d, 2, 10) // it is too late for the error: another migration was even begun
	ensemble.OK(t, next.Unlock())
}

func TestLoss(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.db")
	d := open(t, file)
	first, second := ensemble.Start(t), ensemble.Start(t)
	begun, goOn := hold()
	ended := make(chan error, 1)
	go func() {
		ended <- adapter.Up(t.Context(), ensemble.Must(zklock.New(first.Manager, "/migrate/do")), d, migrations(t))
	}()
	ensemble.Wait(t, begun, "the migration has begun")
	first.Expire(t)
	close(goOn)
	if err := ensemble.Wait(t, ended, "Up has returned"); !errors.Is(err, session.ErrLost) {
		t.Errorf("Up: %v, want a loss", err)
	}
	isAt(t, d, database.NilVersion, 0)
	// The next replica takes all steps, and the one after that finds nothing to do.
	mutex := ensemble.Must(zklock.New(second.Manager, "/migrate/do"))
	for range 2 {
		other := open(t, file)
		ensemble.OK(t, adapter.Up(t.Context(), mutex, other, migrations(t)))
		isAt(t, other, 2, 10)
	}
}

// stale is a driver that shows the version of another time.
type stale struct{ database.Driver }

func (stale) Version() (int, bool, error) { return database.NilVersion, false, nil }

// A former holder that stood still is refused by the claim, and one that has read an old version by the second look.
func TestFenced(t *testing.T) {
	pause = func() {}
	d := open(t, filepath.Join(t.TempDir(), "x.db"))
	mutex := ensemble.Must(zklock.New(ensemble.Start(t).Manager, "/migrate/fenced"))
	ensemble.OK(t, adapter.Up(t.Context(), mutex, d, migrations(t)))
	old := d
	old.Driver = stale{d.Driver}
	if err := adapter.Up(t.Context(), mutex, old, migrations(t)); !errors.Is(err, adapter.ErrMeanwhile) {
		t.Errorf("applied meanwhile: %v", err)
	}
	tx := ensemble.Must(d.DB.BeginTx(t.Context(), nil))
	defer tx.Rollback()
	ensemble.OK(t, fence.SQLite.Claim(t.Context(), tx, 1<<62, d.Table)) // as a later holder
	ensemble.OK(t, tx.Commit())
	if err := adapter.Up(t.Context(), mutex, old, migrations(t)); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a former holder: %v", err)
	}
	isAt(t, d, 2, 10)
}
