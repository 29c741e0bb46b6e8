package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/nodedata"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
)

// Contender is a contender that holds or waits.
type Contender struct {
	Path     string
	Sequence int32
	Data     []byte
	// Holder reports whether the contender may go, by this listing and the present configuration. A holder that a
	// higher limit has let in may not count as one.
	Holder bool

	// ID says who contends: host/pid by default, or the data itself if it is a short text, as Curator's and kazoo's
	// is. A [RevokeMessage] replaces it by "".
	ID          string
	Label       string // as [WithLabel] sets it, or ""
	Traceparent string // of the acquisition, or ""
	// Since is when the node was created, by the clock of the ensemble. A holder may have got the lock later.
	Since time.Time
	// Session is the session whose end deletes the node. A node with session 0 was made by hand, and stays until it
	// is deleted.
	Session int64
	// Token is the czxid of the node: the fencing token, except for a reader that was a writer (see [Lease.Token]).
	Token int64

	// Own reports whether the node belongs to the session of this manager. Only then are the next two set.
	Own bool
	// HeldSince is when this process got the lock, by a grant or a hand-over, or the zero time.
	HeldSince time.Time
	// Kept reports whether this process keeps the place unused (zklock.WithLazyRelease).
	Kept bool
}

// Contenders returns the contenders of a kind, in order, as they were at a moment that has passed. It fails with
// zk.ErrNoNode if the directory does not exist: nobody has contended for a while, or the path is wrong. Other errors
// are ctx's, [ErrConflict], [session.ErrClosed], [session.ErrInvalid] for a bad kind, and what the server refuses.
func (q *Queue) Contenders(ctx context.Context, kind *Kind) (out []Contender, err error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Contenders")
	if err = kind.Check(); err == nil {
		err = q.inSession(ctx, rounds.NewPace(q.m.Backoff()), func(ctx context.Context, s *session.Session) (err error) {
			out, err = q.contendersIn(ctx, s, kind)
			return err
		})
	}
	if err != nil {
		return nil, failed("contenders of", q.dir, err)
	}
	return out, nil
}

func (q *Queue) contendersIn(ctx context.Context, s *session.Session, kind *Kind) ([]Contender, error) {
	nodes, _, err := q.listed(ctx, s, kind)
	if err != nil || len(nodes) == 0 {
		return []Contender{}, err
	}
	var c Config
	if kind.Configuration != nil {
		data, stat, err := s.Get(ctx, q.dir)
		if err != nil { // all have left
			return []Contender{}, ignoreNoNode(err)
		}
		c = configOf(data, stat)
	}
	out := make([]Contender, len(nodes))
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, n := range nodes {
		g.Go(func() error {
			node := q.nodePath(n.Name)
			data, stat, err := s.Get(within, node)
			if err == nil {
				out[i] = Contender{Path: node, Sequence: n.Sequence}
				out[i].fill(s, data, stat)
			}
			return ignoreNoNode(err) // it has left
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	left := func(c Contender) bool { return c.Path == "" }
	for i, n := range nodes {
		out[i].Holder, err = holds(kind, n, nodes, c, func(j int) bool { return left(out[j]) })
		if err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(out, left), nil
}

func (q *Queue) listed(ctx context.Context, s *session.Session, kind *Kind) (nodes []Node, until int64, err error) {
	names, stat, err := s.Children(ctx, q.dir)
	if err != nil {
		return nil, 0, err
	}
	nodes = parseNodes(names, kind.Prefixes...)
	for _, n := range nodes {
		if !slices.Contains(kind.Prefixes, n.Prefix) {
			return nil, 0, conflictOf(kind, n)
		}
	}
	return nodes, stat.Pzxid, nil
}

func (c *Contender) fill(s *session.Session, data []byte, stat *zk.Stat) {
	describe(c, data, stat)
	if c.Own = c.Session == s.ID(); c.Own {
		c.HeldSince, c.Kept = turns.lookUp(s, c.Path)
	}
}

func describe(c *Contender, data []byte, stat *zk.Stat) {
	who := nodedata.Of(data)
	c.Data, c.ID, c.Label, c.Traceparent = data, who.ID, who.Label, who.Traceparent
	c.Since, c.Session, c.Token = time.UnixMilli(stat.Ctime), stat.EphemeralOwner, stat.Czxid
}

// First returns the first contender of a kind: the holder of a mutex, or the leader of an election. If nobody
// contends, it returns the zero value. Otherwise it is like Contenders. To ask often, use [Queue.Observe].
func (q *Queue) First(ctx context.Context, kind *Kind) (first Contender, err error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.First")
	if err := kind.Check(); err != nil {
		return Contender{}, errQueue(err)
	}
	err = q.inSession(ctx, rounds.BriefPace(q.m.Backoff()), func(ctx context.Context, s *session.Session) error {
		nodes, _, err := q.listed(ctx, s, kind)
		if err != nil || len(nodes) == 0 {
			first = Contender{}
			return ignoreNoNode(err)
		}
		first = Contender{Path: q.nodePath(nodes[0].Name), Sequence: nodes[0].Sequence, Holder: true}
		data, stat, err := s.Get(ctx, first.Path)
		switch {
		case isNoNode(err):
			return errMoved
		case err == nil:
			first.fill(s, data, stat)
		}
		return err
	})
	if err != nil {
		return Contender{}, failed("contenders of", q.dir, err)
	}
	return first, nil
}

// errMoved says that something has changed during a look. As a loss, it makes inSession look again.
var errMoved = errors.Join(errDeleted)
