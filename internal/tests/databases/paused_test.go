package databases

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/fence"
)

// idleTimeouts have the server end the transaction if its client does nothing for a while.
var idleTimeouts = map[fence.Dialect]string{
	fence.PostgreSQL: "SET LOCAL idle_in_transaction_session_timeout = '50ms'",
	fence.MySQL:      "SET SESSION idle_transaction_timeout = 1", // second, of MariaDB
}

// paused returns a former holder that stands still in the middle of a transaction, with a write that is not committed.
func (w *world) paused() (*holder, context.CancelFunc) {
	w.Helper()
	w.open(balance)
	ctx, cancel := context.WithCancel(within(w.T))
	h := &holder{world: w, ctx: ctx, token: a}
	h.begin()
	must(w.T, h.claim())
	n, err := h.read()
	must(w.T, err)
	must(w.T, h.write(n-1))
	return h, cancel
}

// The next holder waits for a holder that is paused in the middle of its transaction, and sees what it does in the end.
func TestPausedHolder(t *testing.T) {
	worlds(t, func(w *world) {
		w.run("commits", func(w *world) {
			former, cancel := w.paused()
			defer cancel()
			next := w.deduct(b)
			w.waits()
			must(w.T, former.tx.Commit())
			w.took(next, balance-2)
			w.want(balance - 2)
		})
		w.run("its context ends", func(w *world) {
			former, cancel := w.paused()
			next := w.deduct(b)
			w.waits()
			cancel() // as the context of a Do ends when the lock is lost
			w.took(next, balance-1)
			if former.tx.Commit() == nil {
				w.Error("the transaction was committed after its context had ended")
			}
			w.want(balance - 1)
		})
		timeout, ok := idleTimeouts[w.dialect]
		if !ok {
			return
		}
		w.run("the server ends its transaction", func(w *world) {
			former, cancel := w.paused()
			defer cancel()
			_, err := former.tx.ExecContext(former.ctx, timeout)
			must(w.T, err)
			w.took(w.deduct(b), balance-1)
			if former.tx.Commit() == nil {
				w.Error("the transaction was committed after the server had ended it")
			}
			w.want(balance - 1)
		})
	})
}
