package databases

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/fence"
)

// Tokens begin anew on other servers that have no epoch to raise. With a table for the new generation the holders of the new
// servers write, though their tokens are lower. Those of the old servers do not, once the former table is dropped.
func TestNextGeneration(t *testing.T) {
	once(t, func(w *world) {
		table := func(generation int) (*fence.Table, string) {
			name := fmt.Sprintf("generation_%d_%d", accounts.Add(1), generation)
			made, err := w.dialect.Table(name)
			must(w.T, err)
			w.exec(made.Schema())
			return made, name
		}
		former, name := table(1)
		claim := func(of *fence.Table, token int64) (*holder, error) {
			h := w.holder(token)
			return h, of.Claim(h.ctx, h.tx, token, w.account)
		}
		h, err := claim(former, 309)
		must(w.T, err)
		h.take(balance)
		h, err = claim(former, 8) // of the new servers: they cannot do without a generation
		w.stale(err)
		if text := fmt.Sprint(err); !strings.Contains(text, "309") || !strings.Contains(text, "wiped") {
			w.Errorf("%q does not say what may have happened", text)
		}
		must(w.T, h.tx.Rollback())

		next, _ := table(2)
		w.exec("DROP TABLE " + name)
		h, err = claim(next, 8)
		must(w.T, err)
		h.take(balance - 1)
		h, err = claim(former, 309) // which was paused all the while
		if err == nil || errors.Is(err, fence.ErrStale) {
			w.Errorf("a claim of the former generation: %v", err)
		}
		must(w.T, h.tx.Rollback())
		h, err = claim(next, 9)
		must(w.T, err)
		h.take(balance - 2)
		h, err = claim(next, 8)
		w.stale(err)
		must(w.T, h.tx.Rollback())
		w.want(balance - 3)
	})
}
