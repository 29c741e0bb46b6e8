// Package migrate migrates a database with github.com/golang-migrate/migrate/v4, in one of many replicas.
//
// golang-migrate has no contexts. Its lock is a part of the database's driver, whose Lock and Unlock cannot end a
// migration: it goes on, and is committed, after the lock is lost and while another replica migrates. Its channel
// GracefulStop ends it between two migrations, but is read by two goroutines with a data race, and Up returns nil then. An
// Up that fails leaks a goroutine for each migration that it has read ahead.
//
// [Up] takes the lock outside, by a Do, and gives golang-migrate a driver whose steps end with the lock. A step is one
// transaction, which begins with a claim of package fence and ends with the new version. So a former holder changes
// nothing, also one that stood still, and a step that was ended leaves no version that is dirty, which somebody has to
// mend by hand (Migrate.Force). The next replica takes the step anew.
//
// This is for databases that can roll a change of the schema back, such as PostgreSQL and SQLite, and for migrations that
// may be in a transaction. MySQL commits before and after each change of a schema. There, take the lock by Do, keep the
// driver's own steps and its lock, and expect that a version can be dirty after a loss.
package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/source"

	"github.com/turnstile-go/turnstile/fence"
	"github.com/turnstile-go/turnstile/queue"
)

// Locker is a zklock.Mutex, or any other lock of turnstile.
type Locker interface {
	Do(ctx context.Context, f func(context.Context) error) error
}

// Database is what is migrated.
type Database struct {
	DB      *sql.DB
	Dialect fence.Dialect // its Schema has been run
	Driver  database.Driver
	Table   string // of the driver, such as sqlite.DefaultMigrationsTable
}

// Up applies all migrations of src that are missing while it holds the lock. The other replicas wait in Up, and find
// nothing to do then. If the lock is lost the error matches session.ErrLost.
func Up(ctx context.Context, lock Locker, d Database, src source.Driver) error {
	return lock.Do(ctx, func(ctx context.Context) error {
		m, err := migrate.NewWithInstance("source", src, "database", &steps{Driver: d.Driver, d: d, ctx: ctx})
		if err != nil {
			return err
		}
		for err == nil { // one by one: an Up that fails leaks a goroutine for each migration that it has read ahead
			err = m.Steps(1)
		}
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := m.Up(); !errors.Is(err, migrate.ErrNoChange) { // such as a version that src does not have
			return err
		}
		return nil
	})
}

// ErrMeanwhile is returned if another replica has applied a migration since golang-migrate has looked. Call Up again.
var ErrMeanwhile = errors.New("another replica has migrated meanwhile")

// steps is a driver that begins no step after the end of ctx. golang-migrate calls SetVersion, Run and SetVersion for a
// step, the first time with dirty.
type steps struct {
	database.Driver
	d       Database
	ctx     context.Context
	version int    // as golang-migrate knows it
	change  string // of the step
}

func (s *steps) Version() (version int, dirty bool, err error) {
	s.version, dirty, err = s.Driver.Version()
	return s.version, dirty, err
}

func (s *steps) Run(change io.Reader) error {
	text, err := io.ReadAll(change)
	s.change = string(text)
	return err
}

func (s *steps) SetVersion(version int, dirty bool) error {
	if dirty {
		s.change = ""
		return nil
	}
	lease, ok := queue.LeaseFrom(s.ctx)
	if !ok {
		return errors.New("the lock has no fencing token")
	}
	token, err := lease.Token(s.ctx)
	if err != nil {
		return err
	}
	tx, err := s.d.DB.BeginTx(s.ctx, nil) // rolled back if the lock is lost
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := s.d.Dialect.Claim(s.ctx, tx, token, s.d.Table); err != nil {
		return err
	}
	at := database.NilVersion
	err = tx.QueryRowContext(s.ctx, "SELECT version FROM "+s.d.Table).Scan(&at)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if at != s.version {
		return ErrMeanwhile
	}
	record := fmt.Sprintf("DELETE FROM %s; INSERT INTO %s (version, dirty) VALUES (%d, false)", s.d.Table, s.d.Table, version)
	for _, text := range []string{s.change, record} {
		if _, err := tx.ExecContext(s.ctx, text); err != nil {
			return errors.Join(err, context.Cause(s.ctx))
		}
	}
	if s.ctx.Err() != nil { // looks at the clock
		return context.Cause(s.ctx)
	}
	s.version = version
	return tx.Commit()
}
