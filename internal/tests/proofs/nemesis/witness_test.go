//go:build linux

package nemesis

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// witnesses are sessions of the test itself, one at each server, which nobody cuts off from it.
type witnesses struct {
	at []*session.Manager

	// agreement is how long the servers may take to agree. One that is stopped or cut off answers nothing meanwhile.
	agreement time.Duration
}

func newWitnesses(t *testing.T, e *zktest.Ensemble, p pace) (w witnesses, err error) {
	w.agreement = 2 * p.timeout
	ctx, cancel := context.WithTimeout(t.Context(), healing)
	defer cancel()
	w.at = make([]*session.Manager, e.Len())
	for i := range w.at {
		w.at[i], err = session.Connect(ctx, e.Addr(i), session.WithTimeout(2*p.timeout),
			session.WithTickTime(p.tick), session.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return w, err
		}
		t.Cleanup(func() { _ = w.at[i].Close() })
	}
	return w, nil
}

// agree waits until every server has the newest data of a node that any server has, and reports
// whether that has come. A server that led and does not know yet that it no longer does can
// answer with what is old: but at least one of the others has what a majority has agreed to.
func (w witnesses) agree(ctx context.Context, node string) bool {
	ctx, cancel := context.WithTimeout(ctx, w.agreement)
	defer cancel()
	var newest int64
	for {
		var all errgroup.Group
		seen := make([]int64, len(w.at))
		for i := range w.at {
			all.Go(func() (err error) {
				seen[i], err = w.changed(ctx, i, node)
				return err
			})
		}
		if all.Wait() != nil {
			return false
		}
		if newest == 0 {
			newest = slices.Max(seen)
		}
		if slices.Min(seen) >= newest {
			return true
		}
		pause(ctx, 10*time.Millisecond)
	}
}

// changed returns in which transaction the data of a node was set, as one server has it. A server that does not serve
// answers at once.
func (w witnesses) changed(ctx context.Context, server int, node string) (zxid int64, err error) {
	now := w.at[server].Status()
	s := now.Session
	if s == nil || now.State != session.Connected {
		return 0, errNotServing
	}
	_, stat, err := s.Get(ctx, node)
	if err != nil {
		return 0, err
	}
	return stat.Mzxid, nil
}

var errNotServing = errors.New("a server does not serve")
