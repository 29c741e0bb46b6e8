package databases

import (
	"errors"
	"os/exec"
	"path/filepath"

	"github.com/go-sql-driver/mysql"

	"github.com/turnstile-go/turnstile/fence"
)

var mariadb = &server{
	driver: "mysql",
	source: func(dir string) string { return "root@unix(" + filepath.Join(dir, "socket") + ")/mysql" },
	run: func(s *server) (*exec.Cmd, error) {
		if err := mysql.SetLogger(&mysql.NopLogger{}); err != nil { // it logs each connection that the server ends
			return nil, err
		}
		install, err := program("/usr/bin/mariadb-install-db", "/usr/local/bin/mariadb-install-db", "/opt/homebrew/bin/mariadb-install-db")
		if err != nil {
			return nil, err
		}
		mariadbd, err := program("/usr/sbin/mariadbd", "/usr/local/bin/mariadbd", "/opt/homebrew/bin/mariadbd")
		if err != nil {
			return nil, err
		}
		data := filepath.Join(s.dir, "data")
		initialize := s.command(install, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--datadir="+data)
		if out, err := initialize.CombinedOutput(); err != nil {
			return nil, errors.Join(err, errors.New(string(out)))
		}
		// Nobody needs the data after a crash. Snapshot isolation is on by default from 11.6 on.
		return s.command(mariadbd, "--no-defaults", "--datadir="+data, "--socket="+filepath.Join(s.dir, "socket"),
			"--pid-file="+filepath.Join(s.dir, "pid"), "--skip-networking", "--innodb-flush-log-at-trx-commit=0",
			"--loose-innodb-snapshot-isolation=OFF"), nil
	},
	tables: []string{
		"CREATE TABLE account (id VARCHAR(64) PRIMARY KEY, balance BIGINT NOT NULL, token BIGINT) ENGINE=InnoDB",
		"CREATE TABLE narrow (id VARCHAR(64), token INT NOT NULL) ENGINE=InnoDB",
		"CREATE TABLE wordy (id VARCHAR(64), token VARCHAR(32)) ENGINE=InnoDB",
		fence.MySQL.Schema(),
	},
}

// waitingInMariaDB counts the statements that wait for a row lock. (INNODB_TRX does not change while it is asked all the
// time.)
const waitingInMariaDB = `SELECT variable_value FROM information_schema.GLOBAL_STATUS
	WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'`

// mariadbAgain reports whether a transaction can be run once more: deadlocks, lock timeouts, and rows that have changed
// since the snapshot.
func mariadbAgain(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && (e.Number == 1213 || e.Number == 1205 || e.Number == 1020)
}
