package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// WithRank makes this candidate better than those of a lower rank; higher is better, as in VRRP, Patroni and
// MongoDB. When it has been in the queue for a while ([WithTakeoverDelay]), it asks all candidates of a lower
// rank ahead of it to resign, once each: the leader resigns as after [zklock.Revoke], and the others let
// their turn pass. So the best candidate leads in the end, and the leadership moves once for it, however many
// are ahead. Candidates of the same rank lead in the order in which they came.
//
// The queue decides who leads, as without ranks. A leader whose function does not return goes on to lead. If the
// better candidate dies meanwhile, those that have resigned are in the queue again, and one of them leads when
// the servers have expired its session. A candidate whose session was lost waits for the delay anew. One that
// does not campaign counts for nothing. Resign of the best candidate moves the leadership for the delay only:
// to keep it from leading, end the context of its Run.
//
// n is at least 0 and at most 2³¹ − 1, so the number of a build or of a release will do: in a rolling
// deployment the new replicas are better.
//
// Give all candidates the option, with 0 too. One without it has rank 0 for others, and resigns for a better
// one. But it does not look, when its turn comes, whether it was asked to let that pass, so its function may
// be called for a moment. Candidates of Curator and kazoo know no ranks, and are not asked: all wait for them.
//
// The option costs a read at the beginning of each term. A candidate of rank 1 or more has a goroutine while it
// waits, and sends a listing, and a read and a write for each candidate of a lower rank ahead of it. It needs
// the permission to write their nodes ([session.WithACL]); if that is missing, the log says so, and it waits
// for its turn. From when it was asked until it has resigned, a candidate has the ID "" in what
// [Election.Leader] and [Election.Contenders] return.
//
// Default: this candidate asks nobody.
func WithRank(n int) Option {
	return option(func(c *config) error {
		if n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("%w: rank %d: want 0 to %d", session.ErrInvalid, n, math.MaxInt32)
		}
		c.ranked, c.rank = true, n
		return nil
	})
}

// WithTakeoverDelay sets for how long a candidate has to be in the queue, in one session, before it asks
// others of a lower rank to resign ([WithRank]). A candidate that does not last for so long takes nothing
// over. That keeps the leadership from moving to and fro when a better candidate comes and goes, as on a machine
// that loses its session again and again. d must be above 0. A candidate that should not lead before it is
// ready calls Run when it is.
//
// Default: the session timeout, 10 s unless set.
func WithTakeoverDelay(d time.Duration) Option {
	return option(func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("%w: a takeover delay of %v", session.ErrInvalid, d)
		}
		c.delay = d
		return nil
	})
}

// The rank of a candidate is in the name of its node, as in _c_<uuid>-rank3-elect-lock-0000000007. There is
// no mechanism but that of zklock.Revoke: see takeOver.

// rankWord stands before the number.
const rankWord = "rank"

// prefixOf returns the prefix of a candidate of a rank. behind is what Candidate stands before.
func prefixOf(rank int, behind string) string {
	if rank == 0 {
		return place.Candidate + behind
	}
	return rankWord + strconv.Itoa(rank) + "-" + place.Candidate + behind
}

// rankOf returns the rank that the name of a node says. It is false if the node is not that of a candidate of
// this module.
func rankOf(name string) (rank int, candidate bool) {
	before, _, candidate := strings.Cut(name, "-"+place.Candidate)
	word, ranked := strings.CutPrefix(before[strings.LastIndexByte(before, '-')+1:], rankWord)
	n, err := strconv.ParseUint(word, 10, 31)
	if !candidate || !ranked || err != nil {
		return 0, candidate
	}
	return int(n), true
}

// arrival is a node of this candidate.
type arrival struct {
	s    *core.Session
	node kinds.Node
}

// arrived notes that a node of this candidate stands in the queue.
func (e *Election) arrived(s *core.Session, node kinds.Node) {
	select {
	case <-e.arrivals: // of a node that is gone
	default:
	}
	e.arrivals <- arrival{s, node}
}

// challenge has this candidate take over while it waits, if it has a rank. The caller calls stop when it has
// waited, once or more often.
func (e *Election) challenge(ctx context.Context) (stop func()) {
	if e.arrivals == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var over sync.WaitGroup
	over.Go(func() {
		var due <-chan time.Time
		var last arrival
		for {
			select {
			case last = <-e.arrivals:
				due = time.After(cmp.Or(e.delay, last.s.Timeout()))
			case <-due:
				e.takeOver(ctx, last)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		over.Wait()
	}
}

// takeOver asks all candidates of a lower rank ahead of a node to resign. The one ahead of all others, which
// leads, comes last: when it resigns, those between the two have been asked, and let their turn pass. It stops when
// the session of the node ends: the next node waits for the delay anew.
func (e *Election) takeOver(ctx context.Context, a arrival) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-a.s.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	ahead, err := e.lock.Queue.Ahead(ctx, a.s, e.lock.Request.Kind, a.node)
	if err != nil {
		return // the session or the campaign is over, or the next listing of the queue fails too
	}
	for _, n := range slices.Backward(ahead) {
		if rank, candidate := rankOf(n.Name); !candidate || rank >= e.rank {
			continue
		}
		node := path.Join(e.Path(), n.Name)
		err := zklock.Revoke(ctx, e.Manager(), node)
		if err != nil && ctx.Err() == nil && !errors.Is(err, zk.ErrNoNode) {
			e.lock.Queue.Manager().Logger().Warn("a candidate of a lower rank could not be asked to resign",
				"lock", e.Path(), "node", node, "error", err)
		}
	}
}

// passes reports whether this candidate lets its turn pass: it was asked to, or its turn is over already. The
// server that has told us of the turn knows whether we were asked before.
func (e *Election) passes(ctx context.Context, lease *queue.Lease) bool {
	if !e.ranked {
		return false
	}
	s, err := e.Manager().Session(ctx)
	if err != nil {
		return ctx.Err() != nil
	}
	data, _, err := s.Get(ctx, lease.Path())
	return ctx.Err() != nil || err == nil && string(data) == queue.RevokeMessage
}
