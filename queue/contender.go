package queue

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/session"
	"golang.org/x/sync/errgroup"
)

// Contender is a contender that holds or waits.
type Contender struct {
	Path     string // of its node
	Sequence int32  // lower is earlier
	Data     []byte // of its node
	// Holder reports whether the contender may go, by this listing and the present
	// configuration. A holder that a higher limit has let in may not count as one.
	Holder bool

	// ID says who contends, as far as the data tells: host/pid for the data that this module
	// writes by default, otherwise the data itself if it is a short text, as Curator's and kazoo's
	// are. It is "" if the data is something else, and after a [RevokeMessage] has replaced it.
	ID string
	// Label is the label of the acquisition, as WithLabel of package zklock sets it, or "".
	Label string
	// Traceparent is the W3C traceparent of the acquisition, or "".
	Traceparent string
	// Revocable says whether zklock.Revoke can reach the holder.
	Revocable Revocable
	// Since is when the node was created, by the clock of the ensemble's leader. For a holder, that
	// is when it came to the queue, and not when it got the lock.
	Since time.Time
	// Session is the id of the ZooKeeper session whose end deletes the node. It is 0 for a node
	// that is not ephemeral. No client of this module makes such a node: it was left by hand, and
	// stays until somebody deletes it.
	Session int64
	// Token is the fencing token of the node: see [Lease.Token]. A reader that was a writer before
	// has a lower one, that of the writer's node.
	Token int64

	// Own reports whether the node belongs to the session of this manager, and so to this process.
	Own bool
	// HeldSince is when this process got the lock that it holds by the node. It is the zero time if
	// the node is not its Own, or is not held. After a hand-over within the process it is the time of
	// the hand-over.
	HeldSince time.Time
	// Kept reports whether this process keeps the place although nobody holds the lock, in case it wants
	// the lock again: see [WithLazyRelease]. It is false if the node is not its Own.
	Kept bool
}

// Contenders returns the contenders of a kind, in order, as they were at a moment that has
// passed. The list is empty if there are none. If the directory does not exist, the error matches
// zk.ErrNoNode: nobody contends, and nobody has for a while, since servers remove directories that
// are empty; or the path is wrong. Contenders also fails with ctx's error, [ErrConflict],
// [session.ErrClosed], [session.ErrInvalid] for a bad kind, or what the server refused.
func (q *Queue) Contenders(ctx context.Context, kind *Kind) ([]Contender, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Contenders")
	if err := kind.Check(); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	for {
		s, err := q.m.Session(ctx)
		if err != nil {
			return nil, fmt.Errorf("contenders of %s: %w", q.dir, err)
		}
		out, err := q.contendersIn(ctx, s, kind)
		if errors.Is(err, session.ErrLost) {
			continue // in the next session
		}
		if err != nil {
			return nil, fmt.Errorf("contenders of %s: %w", q.dir, err)
		}
		return out, nil
	}
}

func (q *Queue) contendersIn(ctx context.Context, s *core.Session, kind *Kind) ([]Contender, error) {
	names, _, err := s.Children(ctx, q.dir)
	if err != nil {
		return nil, err
	}
	nodes, err := ofKind(parseNodes(names, kind.Prefixes...), kind)
	if err != nil || len(nodes) == 0 {
		return []Contender{}, err
	}
	var c config
	if kind.configuration != nil {
		c, err = readConfig(ctx, s, q.dir)
		if errors.Is(err, zk.ErrNoNode) { // all have left since the listing
			return []Contender{}, nil
		}
		if err != nil {
			return nil, err
		}
	}
	out := make([]Contender, len(nodes))
	for i, n := range nodes {
		out[i] = Contender{Path: path.Join(q.dir, n.Name), Sequence: n.Sequence}
	}
	if err := readData(ctx, s, out); err != nil {
		return nil, err
	}
	if err := markHolders(out, nodes, kind, c); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(out, Contender.gone), nil
}

// gone reports whether the contender has left since the directory was listed: see readData.
func (c Contender) gone() bool { return c.Path == "" }

// markHolders sets Holder of all contenders, whose nodes are given in the same order. A node that has
// left since the listing is in nobody's way, unless another node has taken its place. No contender
// can have come ahead meanwhile.
func markHolders(all []Contender, nodes []Node, kind *Kind, c config) error {
	left := make(map[string]bool)
	for i, n := range nodes {
		left[n.Name] = all[i].gone()
	}
	for i, n := range nodes {
		p, err := kind.ruleOf(n, c)
		if err != nil {
			return err
		}
		ahead := slices.DeleteFunc(blockers(n, nodes, p.Policy), func(b blocker) bool {
			return left[b.node.Name] && !b.replaces
		})
		all[i].Holder = mayGo(ahead, p.Slack)
	}
	return nil
}

// readData adds what the nodes say. The path of a contender whose node is gone becomes "".
func readData(ctx context.Context, s *core.Session, all []Contender) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i := range all {
		g.Go(func() error {
			data, stat, err := s.Get(ctx, all[i].Path)
			if errors.Is(err, zk.ErrNoNode) {
				all[i].Path = "" // gone
				return nil
			}
			if err == nil {
				all[i].fill(s, data, stat)
			}
			return err
		})
	}
	return g.Wait()
}

// fill adds what the node says, and what this process knows of it.
func (c *Contender) fill(s *core.Session, data []byte, stat *zk.Stat) {
	c.describe(data, stat)
	if c.Own = c.Session == s.ID(); c.Own {
		c.HeldSince, c.Kept = held.look(s, c.Path)
	}
}

// describe adds what the node's data and stat say.
func (c *Contender) describe(data []byte, stat *zk.Stat) {
	who := whoIs(data)
	c.Data, c.ID, c.Label, c.Traceparent, c.Revocable = data, who.ID, who.Label, who.Traceparent, who.listens()
	c.Since, c.Session, c.Token = time.UnixMilli(stat.Ctime), stat.EphemeralOwner, stat.Czxid
}

// ofKind returns the nodes, or ErrConflict if one of them is of another kind of lock.
func ofKind(nodes []Node, kind *Kind) ([]Node, error) {
	for _, n := range nodes {
		if !slices.Contains(kind.Prefixes, n.Prefix) {
			return nil, kind.conflict(n)
		}
	}
	return nodes, nil
}

// conflict returns the error for a contender of another kind of lock.
func (k *Kind) conflict(n Node) error {
	return fmt.Errorf("%w: %s lock finds %s", ErrConflict, k.called(), n.Name)
}
