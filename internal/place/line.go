package place

import (
	"context"
	"errors"
	"math"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/kinds"
)

// Line follows the first contender of a queue, for observers that do not contend. It is for kinds of which
// only the first contender holds.
//
// It lists the directory once, and then watches the first node. When that node goes, the next one of the list
// is the first, since nobody comes ahead of others. So a change costs a read of one node, however many
// contend, and nothing is sent while nothing changes. One goroutine uses a Line.
//
// Servers do not tell a client of a directory that is made so that the client may not read it. While there is
// none, the Line looks again once in a session timeout, and then fails with that refusal.
type Line struct {
	q    *Queue
	kind *kinds.Kind
	pace rounds.Pace

	nodes  []kinds.Node  // the first, and those behind it
	listed int64         // the list showed all transactions on the directory up to this one
	watch  *core.Watch   // on the first node, or on the directory; nil: look at once
	absent time.Duration // if there was no directory: the session timeout; otherwise 0

	told bool
	last int64 // token of the contender that Next has returned; 0 for none. Names can come again
}

// Line returns a Line of the contenders of a kind. It sends nothing.
func (q *Queue) Line(kind *kinds.Kind) *Line {
	return &Line{q: q, kind: kind, pace: rounds.Pace{New: rounds.Brief(q.m.Retry())}}
}

// Next waits until there is another first contender than the one that it has returned before, and returns it.
// If nobody contends, that is the zero value. It fails with the error of ctx, ErrConflict, core.ErrClosed, or
// what the server refuses.
func (l *Line) Next(ctx context.Context) (kinds.Contender, error) {
	for {
		if err := l.wait(ctx); err != nil {
			return kinds.Contender{}, err
		}
		first, err := l.look(ctx)
		switch {
		case ctx.Err() != nil:
			return kinds.Contender{}, ctx.Err()
		case isPassing(err):
			l.watch = nil
		case err != nil:
			return kinds.Contender{}, Failed("contenders of", l.q.dir, err)
		case !l.told || l.last != first.Token:
			l.told, l.last = true, first.Token
			return first, nil
		}
	}
}

// wait waits until there may be another first contender.
func (l *Line) wait(ctx context.Context) error {
	if l.watch != nil {
		began := time.Now()
		event := make(chan struct{}, 1)
		defer l.watch.Notify(event)()
		var again <-chan time.Time
		if l.absent > 0 {
			timer := time.NewTimer(l.absent)
			defer timer.Stop()
			again = timer.C
		}
		select {
		case <-event:
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		}
		l.pace.Rested(time.Since(began))
	}
	return l.pace.Wait(ctx, nil)
}

// mostTries is how many nodes of an old list are tried before the directory is listed again.
const mostTries = 2

// look returns the first contender, or the zero value, and sets a watch that ends when that may change.
func (l *Line) look(ctx context.Context) (kinds.Contender, error) {
	s, err := l.q.m.Session(ctx)
	if err != nil {
		return kinds.Contender{}, err
	}
	if l.watch != nil && l.watch.Event() == core.WatchDeleted && len(l.nodes) > 0 {
		l.nodes = l.nodes[1:]
	}
	if len(l.nodes) > 0 && !ordered(l.nodes[len(l.nodes)-1]) {
		l.nodes = nil
	}
	for tries := 0; tries < mostTries && len(l.nodes) > 0; tries++ {
		if c, err := l.watchFirst(ctx, s); !errors.Is(err, errMoved) {
			return c, err
		}
	}
	if err := l.list(ctx, s); err != nil {
		return kinds.Contender{}, err
	}
	if len(l.nodes) > 0 {
		return l.watchFirst(ctx, s)
	}
	if l.absent > 0 && stands(l.watch) {
		return kinds.Contender{}, nil // the watch waits for the directory
	}
	if l.watch, err = s.WatchChildren(ctx, l.q.dir); err != nil {
		return kinds.Contender{}, err
	}
	if err := l.list(ctx, s); err != nil || len(l.nodes) == 0 {
		return kinds.Contender{}, err
	}
	return l.watchFirst(ctx, s) // it came before the watch was set
}

// ordered reports whether all that come behind a node have higher numbers. After the end of the counter,
// numbers are negative.
func ordered(last kinds.Node) bool { return last.Sequence >= 0 && last.Sequence < math.MaxInt32/2 }

// list lists the directory. One that is missing has no contenders.
func (l *Line) list(ctx context.Context, s *core.Session) (err error) {
	l.nodes, l.listed, err = l.q.listed(ctx, s, l.kind)
	l.absent = 0
	if errors.Is(err, zk.ErrNoNode) {
		l.absent = s.Timeout()
		return nil
	}
	return err
}

// watchFirst reads the first of the nodes and watches it. If the node is gone, it is taken off, and the error
// is errMoved.
func (l *Line) watchFirst(ctx context.Context, s *core.Session) (kinds.Contender, error) {
	n := l.nodes[0]
	c := kinds.Contender{Path: path.Join(l.q.dir, n.Name), Sequence: n.Sequence, Holder: true}
	data, stat, watch, err := s.Watch(ctx, c.Path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		l.nodes = l.nodes[1:]
		return kinds.Contender{}, errMoved
	case err != nil:
		return kinds.Contender{}, err
	case stat.Czxid > l.listed: // it has the name of one that was listed, in a directory that was made anew
		l.nodes = nil
		return kinds.Contender{}, errMoved
	}
	fill(&c, s, slices.Clone(data), stat) // which other watchers of the node share
	l.watch = watch
	return c, nil
}

// First returns the first contender, as it was at a moment that has passed, or the zero value. If the
// directory is missing, the error matches zk.ErrNoNode.
func (q *Queue) First(ctx context.Context, kind *kinds.Kind) (c kinds.Contender, err error) {
	pace := rounds.Pace{New: rounds.Brief(q.m.Retry())}
	err = q.inSession(ctx, &pace, func(ctx context.Context, s *core.Session) (err error) {
		if c, err = q.readFirst(ctx, s, kind); isPassing(err) {
			return errMoved
		}
		return err
	})
	if err != nil {
		return kinds.Contender{}, Failed("contenders of", q.dir, err)
	}
	return c, nil
}

func (q *Queue) readFirst(ctx context.Context, s *core.Session, kind *kinds.Kind) (kinds.Contender, error) {
	nodes, _, err := q.listed(ctx, s, kind)
	if err != nil || len(nodes) == 0 {
		return kinds.Contender{}, err
	}
	c := kinds.Contender{Path: path.Join(q.dir, nodes[0].Name), Sequence: nodes[0].Sequence, Holder: true}
	data, stat, err := s.Get(ctx, c.Path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return kinds.Contender{}, errMoved
	case err != nil:
		return kinds.Contender{}, err
	}
	fill(&c, s, data, stat)
	return c, nil
}
