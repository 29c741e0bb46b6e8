package databases

import (
	"database/sql"
	"slices"
	"testing"

	"github.com/turnstile-go/turnstile/fence"
)

// The recipes of this file lose an update. The tests see that they do, so that nobody takes the rule for caution: two
// holders take one away, and one is gone.

// lossy are the levels at which a recipe loses.
type lossy map[fence.Dialect][]sql.IsolationLevel

// lose runs a recipe in which two holders take one away, and sees that one is gone.
func (l lossy) lose(t *testing.T, recipe func(w *world)) {
	each(t, func(w *world) {
		if w.snapshots || !slices.Contains(l[w.dialect], w.level) {
			return
		}
		w.store = stores(w.T, w.dialect)[0]
		w.open(balance)
		recipe(w)
		w.want(balance - 1) // and not -2
	})
}

// change runs a statement of the transaction, and returns the number of affected rows.
func (h *holder) change(statement string, args ...any) int64 {
	h.Helper()
	r, err := h.tx.ExecContext(h.ctx, h.sql(statement), args...)
	must(h.T, err)
	changed, err := r.RowsAffected()
	must(h.T, err)
	return changed
}

// writeComparing writes if no higher token has written, and commits: the recipe that the README had once.
func (h *holder) writeComparing(n int) {
	h.Helper()
	const statement = "UPDATE account SET balance = ?, token = ? WHERE id = ? AND coalesce(token, 0) <= ?"
	if h.change(statement, n, h.token, h.account, h.token) != 1 {
		h.Errorf("the write with token %d was refused", h.token)
	}
	must(h.T, h.tx.Commit())
}

// claimAlone claims in a transaction of its own.
func (w *world) claimAlone(token int64) {
	w.Helper()
	h := w.holder(token)
	must(w.T, h.claim())
	must(w.T, h.tx.Commit())
}

// check begins a transaction, and sees that the token is still there.
func (w *world) check(token int64) *holder {
	w.Helper()
	h := w.holder(token)
	var got int64
	const query = "SELECT token FROM turnstile_fence WHERE resource = ?"
	must(w.T, h.tx.QueryRowContext(h.ctx, h.sql(query), h.account).Scan(&got))
	if got != token {
		w.Errorf("the token is %d, and that of the holder %d", got, token)
	}
	return h
}

// The token is compared with the write only, and the data was read before. A's lock expires behind its read.
func TestComparedAtTheWrite(t *testing.T) {
	all := slices.Concat(levels, []sql.IsolationLevel{sql.LevelDefault})
	lossy{fence.PostgreSQL: all, fence.MySQL: all, fence.SQLite: all}.lose(t, func(w *world) {
		byA := w.see()
		byB := w.see()
		w.holder(a).writeComparing(byA - 1)
		w.holder(b).writeComparing(byB - 1)
	})
}

// The same, with the read in the transaction of the write.
func TestComparedAtTheWriteOfOneTransaction(t *testing.T) {
	lossy{
		fence.PostgreSQL: {sql.LevelReadUncommitted, sql.LevelReadCommitted},
		fence.MySQL:      {sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead},
	}.lose(t, func(w *world) {
		first, second := w.holder(a), w.holder(b)
		byA, err := first.read()
		must(w.T, err)
		byB, err := second.read()
		must(w.T, err)
		first.writeComparing(byA - 1)
		second.writeComparing(byB - 1)
	})
}

// Each holder claims in a transaction of its own. That of the write only checks that the token is still there.
func TestClaimedInAnotherTransaction(t *testing.T) {
	lossy{
		fence.PostgreSQL: {sql.LevelReadUncommitted, sql.LevelReadCommitted},
		fence.MySQL:      {sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead},
	}.lose(t, func(w *world) {
		w.claimAlone(a)
		first := w.check(a)
		byA, err := first.read() // A's lock expires
		must(w.T, err)
		w.claimAlone(b)
		second := w.check(b)
		byB, err := second.read()
		must(w.T, err)
		must(w.T, first.write(byA-1))
		must(w.T, first.tx.Commit())
		must(w.T, second.write(byB-1))
		must(w.T, second.tx.Commit())
	})
}

// The same, with the check in the statement that writes.
func TestClaimedInAnotherTransactionAndCheckedByTheWrite(t *testing.T) {
	const statement = `UPDATE account SET balance = ?, token = ? WHERE id = ? AND
		(SELECT f.token FROM turnstile_fence f WHERE f.resource = account.id) = ?`
	committed := []sql.IsolationLevel{sql.LevelReadCommitted}
	lossy{fence.PostgreSQL: committed, fence.MySQL: committed}.lose(t, func(w *world) {
		w.claimAlone(a)
		first := w.holder(a)
		byA, err := first.read()
		must(w.T, err)
		if first.change(statement, byA-1, a, w.account, a) != 1 { // A's lock expires, and A is paused
			w.Error("the write of A was refused")
		}
		w.claimAlone(b)
		second := w.holder(b)
		byB, err := second.read()
		must(w.T, err)
		must(w.T, first.tx.Commit())
		if second.change(statement, byB-1, b, w.account, b) != 1 {
			w.Error("the write of B was refused")
		}
		must(w.T, second.tx.Commit())
	})
}

// B's transaction reads before it claims. What it reads behind the claim is as old as that.
func TestReadBeforeTheClaim(t *testing.T) {
	lossy{fence.MySQL: {sql.LevelRepeatableRead}}.lose(t, func(w *world) {
		second := w.holder(b)
		_, err := second.read()
		must(w.T, err)
		first := w.holder(a)
		must(w.T, first.claim())
		first.take(balance)
		must(w.T, second.claim())
		second.take(balance) // and not balance - 1
	})
}

// PostgreSQL, and MariaDB with snapshot isolation, refuse such a claim in place of losing an update.
func TestReadBeforeTheClaimRefused(t *testing.T) {
	worlds(t, func(w *world) {
		if !w.snapshots && (w.dialect != fence.PostgreSQL || w.level < sql.LevelRepeatableRead) {
			return
		}
		second := w.holder(b)
		_, err := second.read()
		must(w.T, err)
		first := w.holder(a)
		must(w.T, first.claim())
		first.take(balance)
		if err := second.claim(); !w.again(err) {
			w.Errorf("got %v, want a serialization failure", err)
		}
	})
}

// A store that refuses an equal token refuses the holder's own second write.
func TestEqualTokenRefused(t *testing.T) {
	each(t, func(w *world) {
		w.open(balance)
		h := w.holder(a)
		for i, want := range []int64{1, 0} {
			const statement = "UPDATE account SET balance = balance - 1, token = ? WHERE id = ? AND coalesce(token, 0) < ?"
			if got := h.change(statement, a, w.account, a); got != want {
				w.Errorf("write %d changes %d rows, want %d", i, got, want)
			}
		}
		must(w.T, h.tx.Commit())
		w.want(balance - 1) // and not -2
	})
}

// MySQL reports no affected row for a claim with an equal token, as for one with a lower token.
func TestAffectedRows(t *testing.T) {
	each(t, func(w *world) {
		if w.dialect != fence.MySQL {
			return
		}
		w.open(balance)
		h := w.holder(b)
		const statement = "UPDATE account SET token = GREATEST(COALESCE(token, 0), ?) WHERE id = ?"
		for i, claim := range []struct{ token, affected int64 }{{b, 1}, {b, 0}, {a, 0}} {
			if got := h.change(statement, claim.token, w.account); got != claim.affected {
				w.Errorf("claim %d affects %d rows, want %d", i, got, claim.affected)
			}
		}
	})
}
