package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
)

type place struct {
	q        *Queue
	s        *session.Session
	kind     *Kind
	lock     string
	node     *session.Node
	sequence int32
	mayKeep  bool
	restart  bool           // see RestartFrom
	children *session.Watch // from the entry, if that granted the turn and the place may be kept
	entered  time.Time      // before the entry's listing was asked for
}

// contender is a place until it is granted or has left. One goroutine runs it.
type contender struct {
	place
	r      *Request
	beside *Turn

	me     Node
	config Config
	since  time.Time
	policy Policy
	own    *session.Watch
	limit  *session.Watch

	view     *view
	position int
	pace     rounds.Pace
	least    int // so few were ahead at the best listing
}

func (q *Queue) newContender(s *session.Session, r *Request) *contender {
	return &contender{
		place: place{q: q, s: s, kind: r.Kind, lock: r.Name}, r: r,
		position: -1, pace: *rounds.NewPace(q.m.Backoff()), least: math.MaxInt,
	}
}

// contend is the life of a contender. It returns the turn, or leaves nothing behind. After a loss (isLoss), another
// node can go on.
func (c *contender) contend(ctx context.Context, how Mode) (t *Turn, err error) {
	if how == Tries {
		if err := c.lookFirst(ctx); err != nil {
			return nil, err
		}
	}
	names, err := c.enter(ctx)
	defer func() { // also if a policy panics
		if t == nil && c.node != nil {
			why := c.q.explain(ctx, err, c.view) // before leave forgets the watches
			c.leave(ctx, err)
			err = why
		}
	}()
	if err != nil {
		return nil, err
	}
	var patience <-chan time.Time
	for {
		v, err := c.decide(names)
		switch {
		case err != nil:
			return nil, err
		case v.Go:
			return c.grant(ctx)
		case how == AtOnce || how != Waits && c.isBusy(names):
			return nil, ErrBusy
		case how != Waits && patience == nil:
			timer := time.NewTimer(keptPatience)
			defer timer.Stop()
			patience = timer.C
		}
		names, c.children = nil, nil // the watch ends when one of those ahead leaves
		if err := c.watch(ctx, &v); err != nil {
			return nil, err
		}
		free, err := c.wait(ctx, patience)
		switch {
		case err != nil:
			return nil, err
		case free && c.beside == nil: // otherwise a listing has to show both nodes
			return c.grant(ctx)
		}
		configured := c.kind.Configuration != nil
		l, err := c.s.List(ctx, c.q.dir, session.ListOptions{Data: configured, Watch: configured})
		if names, err = c.read(ctx, l, err); err != nil {
			return nil, err
		}
	}
}

func (c *contender) enter(ctx context.Context) (names []string, err error) {
	if c.r.Data == nil {
		c.r.Data = c.q.nodeData(ctx, c.r)
	}
	configured := c.kind.Configuration != nil
	n := session.NewNode{
		Dir: c.q.dir, Name: nodeName(c.r.Prefix, c.r.Weight, c.r.MayKeep), Data: c.r.Data,
		Watch: c.r.MayKeep, Directory: configured,
	}
	if c.beside != nil { // with the number of the first node
		n.Fixed = true
		n.Name = fmt.Sprintf("%s%010d", NodeName(uuid.NewString(), c.r.Prefix, c.r.Weight, c.r.MayKeep), c.beside.sequence)
	}
	c.entered = time.Now()
	if c.node, err = c.s.Enter(ctx, n); err != nil {
		return nil, err
	}
	l := c.node.Listing
	c.since, c.children, c.node.Listing = time.Now(), l.Children, nil
	var ok bool
	if c.me, ok = ParseNode(path.Base(c.node.Path), c.kind.Prefixes...); !ok {
		return nil, fmt.Errorf("the server created %q when asked for %q", path.Base(c.node.Path), n.Name)
	}
	c.sequence, c.mayKeep = c.me.Sequence, c.me.MayKeep
	if c.restart = c.me.Sequence >= RestartFrom || c.me.Sequence < 0; c.restart { // negative: past the end
		c.children = nil
	}
	if names, err = c.read(ctx, l, nil); err == nil && configured {
		err = c.meetRivals(ctx, names)
	}
	return names, err
}

// read returns the names in a listing, or errDeleted. A server that lags behind can still show our node after our
// watch has told that it is gone.
func (c *contender) read(ctx context.Context, l *session.Listing, err error) ([]string, error) {
	if err == nil && c.kind.Configuration != nil {
		l, err = c.configured(ctx, l)
	}
	switch {
	case err != nil && !isNoNode(err):
		return nil, err
	case err != nil, !slices.Contains(l.Names, c.me.Name), c.own != nil && c.own.Event() == session.WatchDeleted:
		return nil, errDeleted
	}
	return l.Names, nil
}

// configured returns a listing with a configuration that is not older: contenders may have come or gone by a newer
// one. A newer one does no harm, since those ahead only leave. The first contender finds none, and sets it.
func (c *contender) configured(ctx context.Context, l *session.Listing) (*session.Listing, error) {
	pace := rounds.NewPace(c.q.m.Backoff())
	for tries := 1; ; tries++ {
		if c.config = configOf(l.Data, l.DataStat); l.Directory != nil {
			if c.limit != nil {
				c.limit.Forget() // it may be the same again
			}
			c.limit = l.Directory
		}
		switch {
		case len(c.config.Data) == 0:
			_, err := c.s.Set(ctx, c.q.dir, c.kind.Configuration.Config, c.config.Version)
			if err != nil && !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, session.ErrUncertain) {
				return nil, err
			}
		case c.config.Changed >= l.Stat.Mzxid:
			return l, nil
		}
		if err := pace.Wait(ctx, c.s.Done()); err != nil {
			return nil, err
		}
		var err error
		// A List with Watch returns the data of a pending watch, and does not read it again: so the third has none.
		if l, err = c.s.List(ctx, c.q.dir, session.ListOptions{Data: true, Watch: tries < 2}); err != nil {
			return nil, err
		}
	}
}

func configOf(data []byte, stat *zk.Stat) Config {
	if stat == nil {
		return Config{}
	}
	return Config{Data: data, Changed: stat.Mzxid, Version: stat.Version}
}

// meetRivals fails with ErrConflict if it finds rivals of the kind. Both sides make their nodes before they look, so
// at least one sees the other. A rival can have moved from one directory into the next since our listing.
func (c *contender) meetRivals(ctx context.Context, names []string) error {
	rivals := c.kind.Configuration.Rivals
	if !slices.ContainsFunc(rivals, func(rival string) bool { return slices.Contains(names, rival) }) {
		return nil
	}
	for _, rival := range rivals {
		below := c.q.nodePath(rival)
		children, _, err := c.s.Children(ctx, below)
		if err = ignoreNoNode(err); err != nil {
			return err
		}
		if len(parseNodes(children)) > 0 {
			return fmt.Errorf("%w: %s lock finds contenders below %s", ErrConflict, called(c.kind), below)
		}
	}
	return nil
}

func (c *contender) decide(names []string) (v Verdict, err error) {
	if c.policy, err = c.kind.policy(c.me, c.config); err != nil {
		return v, err
	}
	if c.policy.Slack < 0 { // it would wait for ever, and keep out those behind it
		return v, misuse.Invalidf("weight %d: the limit is %d", c.me.Weight, c.policy.Slack+c.me.Weight)
	}
	if c.beside != nil && !slices.Contains(names, path.Base(c.beside.node.Path)) {
		return v, c.beside.loseNode() // without the first node others get in beside its lease
	}
	v = Decide(c.kind, c.policy, c.me, names)
	if v.Stranger != nil {
		return v, conflictOf(c.kind, *v.Stranger)
	}
	if v.Crowded {
		c.children = nil
	}
	if c.position < 0 {
		c.position = v.Count()
	}
	return v, nil
}

// grant begins the turn. If the node has changed during the wait, another client may have asked for the lock. The
// clock is asked last: listings and events count only while the session is certain.
func (c *contender) grant(ctx context.Context) (*Turn, error) {
	if c.own != nil && c.own.Event() != session.WatchPending {
		_, _, own, err := c.s.Watch(ctx, c.node.Path)
		switch {
		case err == nil:
			c.own = own
		case isNoNode(err):
			return nil, errDeleted
		case ctx.Err() != nil:
			return nil, ctx.Err()
		} // of other refusals Token tells: see watchOwn
	}
	if err := c.s.Err(); err != nil {
		return nil, err
	}
	return newTurn(ctx, c), nil
}

// leave is the only way out of the queue but a grant. A call that was answered waits for the removal, as long as ctx
// allows: the next call should not find the node.
func (c *contender) leave(ctx context.Context, why error) {
	c.r.Shown.show(nil)
	removal := c.remove(ctx)
	c.view.forgetBut(nil)
	if c.limit != nil {
		c.limit.Forget()
	}
	for _, answer := range []error{ErrBusy, ErrConflict, session.ErrInvalid, zk.ErrNoAuth} {
		if errors.Is(why, answer) {
			select {
			case <-removal.Done():
			case <-ctx.Done():
			}
			return
		}
	}
}

// RestartFrom is where counting starts again: see [ErrSequence]. Past 2³¹ - 1 servers repeat numbers, and two
// contenders could hold at once. It is a variable for tests.
var RestartFrom int32 = 1 << 30

// remove has the node removed for certain. ctx is for hooks.
func (p *place) remove(ctx context.Context) *session.Removal {
	r := p.node.Remove(ctx)
	if p.restart {
		go func() {
			<-r.Done()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.s.Timeout())
			defer cancel()
			_ = p.s.Delete(ctx, p.q.dir, -1) // fails if others are there
		}()
	}
	return r
}
