// Package fence keeps former holders of a lock from writing to an SQL database. A holder claims what it writes to
// with its fencing token, and the database refuses the claim if a later holder has been there.
//
//	tx, err := db.BeginTx(ctx, nil)
//	if err != nil {
//		return err
//	}
//	defer tx.Rollback()
//	if err := fence.PostgreSQL.Claim(ctx, tx, token, "invoice-42"); err != nil { // the first statement
//		return err // matches fence.ErrStale if a later holder has been here
//	}
//	var open int
//	if err := tx.QueryRowContext(ctx, "SELECT open FROM invoice WHERE id = 42").Scan(&open); err != nil {
//		return err
//	}
//	if _, err := tx.ExecContext(ctx, "UPDATE invoice SET open = $1 WHERE id = 42", open-10); err != nil {
//		return err
//	}
//	return tx.Commit()
//
// The token comes from the lock, before the transaction begins: [queue.Lease.Token], or [election.Term]. Inside the
// function of a Do, [queue.LeaseFrom] returns the lease. The example of this package is the whole of it.
//
// # Why a lock is not enough
//
// A lock ends when its session does. A process that stands still at that moment, or whose write is on its way, writes
// after the next holder has begun. Tokens grow from holder to holder, so a store that knows the highest token can tell
// the two apart. It is not enough to compare the token with the write:
//
//	A reads 10, and its lock expires
//	B gets the lock, and reads 10
//	A writes 9: no later holder has written yet, so its token is the highest
//	B writes 9: one deduction is lost
//
// # The rule
//
// The first statement of every transaction that writes is the claim. What the transaction bases its writes on is read
// in the same transaction, behind the claim.
//
// A claim locks the row of the resource until the transaction ends. Under that lock it compares the token with the
// row's: it refuses a lower one, and notes a higher one. So transactions that claim one resource run one after the
// other, and each sees what the one before it has written. After the first claim of a holder, no former holder writes.
//
// Three ways to do less lose updates. The tests in internal/tests/databases see each of them lose:
//
//   - The token is compared with the write only (WHERE token <= $1), and the data was read before: the schedule
//     above. It loses at all isolation levels, in all three databases.
//   - The holder claims in a transaction of its own, and reads and writes in later ones, which only check that the
//     token is still there. A paused holder has checked, the next one claims and reads, and then both write. It loses
//     at READ COMMITTED on PostgreSQL and MySQL, even if the check is part of the write, and at REPEATABLE READ on MySQL.
//   - The transaction reads something, whatever it is, before the claim. At REPEATABLE READ, MySQL answers all its
//     later reads from the time of the first one, before the claim had the row to itself.
//
// If you write the statements yourself, do not conclude from the number of affected rows whether a claim was
// refused: MySQL reports 0 for a token that is equal to the row's, and the second transaction of a holder has an
// equal one. Do not refuse an equal token either.
//
// # Where the tokens are
//
//   - In a table of this package, which has a row for each resource. [Dialect.Schema] is the statement that creates
//     it, for your migrations. [Dialect.Claim] uses this table. The first claim makes the row. Rows stay: to delete
//     one is to let former holders in again.
//   - In such a table with a name of your choice: [Dialect.Table].
//   - In a column of a table that you have already: [Dialect.Column]. The claim locks your own row. That row has to be
//     there before the first claim.
//
// The database decides what a resource is. Claim one for each lock path, and always the same one. The data under the
// lock may be in any number of rows and tables, as long as all transactions that write to it claim this resource.
//
// Any other store can do the same in ten lines, if it can compare and write in one step. The example Store has one.
//
// # Isolation levels
//
// The guarantees hold at all of them: READ UNCOMMITTED to SERIALIZABLE of PostgreSQL, and of MySQL and MariaDB with
// InnoDB, and the one level of SQLite, with a rollback journal or a write-ahead log. A table of MySQL that is not in
// InnoDB has no transactions, and cannot be fenced. A claim protects what its transaction writes, and nothing in another
// database.
//
// # Errors, and when to try again
//
// After [ErrStale], give up: another holder has or had the lock. Roll back, and take the lock again. If every claim of
// every holder ends with it, the ZooKeeper servers have lost their data, which ErrStale has more about. After any other
// error, roll back too. Two kinds of error are no fault of the transaction, which can run once more from the beginning,
// with the same token, while the lock is held (the example Retry):
//
//   - Serialization failures and deadlocks, of a claim or a later statement. PostgreSQL has SQLSTATE 40001 and 40P01,
//     MySQL 1213, and MariaDB also 1020. At REPEATABLE READ and above, a claim on PostgreSQL that had to wait
//     for another holder's commit usually ends with 40001.
//   - A wait that took too long: PostgreSQL's 55P03 (lock_timeout), MySQL's 1205 (innodb_lock_wait_timeout, 50 s by
//     default), and SQLite's SQLITE_BUSY. Set busy_timeout of SQLite, which is 0 in most drivers.
//
// If Commit fails because the connection broke, it is not known whether the transaction took effect.
//
// # How long a former holder is in the way
//
// A holder that is paused in the middle of a transaction keeps its row lock, and the next holder's claim waits. When
// the transaction then commits, nothing is lost: the next holder reads what it has written. Bound the wait in two ways:
//
//   - Begin the transaction with a context that ends with the lock, as that of a Do does. database/sql then rolls the
//     transaction back at a loss.
//   - A process that stands still as a whole cannot do that. Let the server end its transaction:
//     idle_in_transaction_session_timeout of PostgreSQL, idle_transaction_timeout of MariaDB, wait_timeout of MySQL.
//     SQLite has no server. There the next holder waits until that process goes on or ends, or for busy_timeout.
//
// # What is guaranteed
//
//   - Of two transactions that claim one resource with different tokens, the one with the higher token sees all writes
//     of the other, or the other writes nothing.
//   - A holder can claim as often as it likes, in one transaction and in many.
//   - A claim that is rolled back leaves no trace.
//   - Bad input fails before anything is sent: an empty resource, a token below 1, an identifier that is none.
//
// # What is not guaranteed
//
//   - Transactions that do not claim are not held up. A report that only reads needs no claim.
//   - Before the first claim of a new holder a former holder can still write. It does so before the new holder has
//     read anything.
//   - Tokens have to come from one lock path of one ensemble. If its servers lose their data, tokens fall, and the
//     database refuses all holders: docs/operations.md in the repository says what to do then.
//   - All transactions have to go to one server that has the row locks. Galera, and MySQL's group replication with
//     several primaries, lock rows on one server only: choose one for writing. A failover to a replica that lacks the
//     last commits loses claims together with the data.
//   - Claims are for locks with one holder at a time: a mutex, the write side of an rwlock, or a leader. Several
//     readers, or holders of a semaphore, have tokens that do not say which of them is last.
//   - A transaction that claims several resources has to claim them in one order everywhere, and all of them before
//     it reads. Otherwise two such transactions can deadlock.
//
// # Concurrency
//
// All values of this package can be used by several goroutines at once. A [sql.Tx] is for one goroutine at a time.
//
// [queue.Lease.Token]: https://pkg.go.dev/github.com/turnstile-go/turnstile/queue#Lease.Token
// [queue.LeaseFrom]: https://pkg.go.dev/github.com/turnstile-go/turnstile/queue#LeaseFrom
// [election.Term]: https://pkg.go.dev/github.com/turnstile-go/turnstile/election#Term
package fence
