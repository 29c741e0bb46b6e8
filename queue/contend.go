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

// place is a node of ours, and what a contender and its turn know of it.
type place struct {
	q        *Queue
	s        *session.Session
	kind     *Kind
	lock     string // the name of the lock, for hooks
	node     *session.Node
	sequence int32
	mayKeep  bool           // as the name of the node says
	restart  bool           // the directory has to become empty, so that counting starts again
	children *session.Watch // set by the listing of the entry, if that granted the turn and the place may be kept
	entered  time.Time      // before that listing was asked for, by our clock
}

// contender is a place, from its Enter until it is granted or has left. One goroutine runs it.
type contender struct {
	place
	r      *Request
	beside *Turn // whose place the contender shares; nil: it has a place of its own

	me     Node      // the name of the node
	config Config    // of the directory, if the kind has a configuration
	since  time.Time // when the node was made, by our clock
	policy Policy
	own    *session.Watch // on the node; nil before the first wait
	limit  *session.Watch // on the directory, if the kind has a configuration

	view     *view       // of the last wait; nil if there was none
	position int         // in the way at entry, or at the look of a try; -1: not known
	pace     rounds.Pace // of the rounds that get us no further
	least    int         // contenders ahead at the best listing so far
}

func (q *Queue) newContender(s *session.Session, r *Request) *contender {
	return &contender{
		place: place{q: q, s: s, kind: r.Kind, lock: r.Name}, r: r,
		position: -1, pace: *rounds.NewPace(q.m.Backoff()), least: math.MaxInt,
	}
}

// contend is the life of a contender. It returns the turn when nobody is in the way any more, or leaves nothing behind.
// The error is a loss (isLoss) if another node can go on.
func (c *contender) contend(ctx context.Context, how Mode) (t *Turn, err error) {
	if how == Tries {
		if err := c.lookFirst(ctx); err != nil {
			return nil, err
		}
	}
	names, err := c.enter(ctx)
	defer func() { // also if a policy panics
		if t == nil && c.node != nil {
			why := c.q.explain(ctx, err, c.view) // while the watches of the wait are there
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
		names, c.children = nil, nil // who goes ahead uses the watch up
		if err := c.watch(ctx, &v); err != nil {
			return nil, err
		}
		free, err := c.wait(ctx, patience)
		switch {
		case err != nil:
			return nil, err
		case free && c.beside == nil: // a place beside another is granted by a listing, which shows both nodes
			return c.grant(ctx)
		}
		configured := c.kind.Configuration != nil
		l, err := c.s.List(ctx, c.q.dir, session.ListOptions{Data: configured, Watch: configured})
		if names, err = c.read(ctx, l, err); err != nil {
			return nil, err
		}
	}
}

// enter makes the node, and returns a listing that shows it.
func (c *contender) enter(ctx context.Context) (names []string, err error) {
	if c.r.Data == nil {
		c.r.Data = c.q.nodeData(ctx, c.r)
	}
	configured := c.kind.Configuration != nil
	n := session.NewNode{
		Dir: c.q.dir, Name: nodeName(c.r.Prefix, c.r.Weight, c.r.MayKeep), Data: c.r.Data,
		Watch: c.r.MayKeep, Directory: configured,
	}
	if c.beside != nil { // the new node has the number of the first one, and so no server gives it one
		n.Fixed = true
		n.Name = fmt.Sprintf("%s%010d", NodeName(uuid.NewString(), c.r.Prefix, c.r.Weight, c.r.MayKeep), c.beside.sequence)
	}
	c.entered = time.Now()
	if c.node, err = c.s.Enter(ctx, n); err != nil {
		return nil, err
	}
	l := c.node.Listing
	c.since, c.children, c.node.Listing = time.Now(), l.Children, nil // so that it can be freed
	var ok bool
	if c.me, ok = ParseNode(path.Base(c.node.Path), c.kind.Prefixes...); !ok {
		return nil, fmt.Errorf("the server created %q when asked for %q", path.Base(c.node.Path), n.Name)
	}
	c.sequence, c.mayKeep = c.me.Sequence, c.me.MayKeep
	if c.restart = c.me.Sequence >= RestartFrom || c.me.Sequence < 0; c.restart { // negative: past the end
		c.children = nil // the place is not kept
	}
	if names, err = c.read(ctx, l, nil); err == nil && configured {
		err = c.meetRivals(ctx, names)
	}
	return names, err
}

// read returns the names of a listing by which the contender may decide. A listing without our node says that it was
// deleted. A server that lags behind can still show it after our watch has told.
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

// configured returns a listing with a configuration that is not older: contenders may have come or gone by a newer one.
// A newer configuration is fine, since those ahead only leave. The first contender, which finds none, sets it.
func (c *contender) configured(ctx context.Context, l *session.Listing) (*session.Listing, error) {
	pace := rounds.NewPace(c.q.m.Backoff())
	for tries := 1; ; tries++ {
		if c.config = configOf(l.Data, l.DataStat); l.Directory != nil {
			if c.limit != nil {
				c.limit.Forget() // it may be the same, once more
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
		// What came with a watch that has not ended is not read again, so from the third try on the data is read
		// without one.
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

// meetRivals fails with ErrConflict if contenders of another kind of lock are in one of the directories that the kind
// names. Both make their nodes before they look, so at least one of the two sees the other. A rival can have moved from
// one into the next since our listing, so it looks into all of them.
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
		return v, c.beside.loseNode() // without the first node others get in beside the lease that has it
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

// grant begins the turn. If our own node has changed during the wait, another client may have asked for the lock. The
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
		}
	}
	if err := c.s.Err(); err != nil {
		return nil, err
	}
	return newTurn(ctx, c), nil
}

// leave is the only way out of the queue but a grant. A call that was answered waits for the removal of its node, as
// long as ctx allows, so that the next one finds nothing.
func (c *contender) leave(ctx context.Context, why error) {
	c.r.Shown.show(nil)
	removal := c.remove(ctx)
	c.view.forgetBut(nil) // those ahead may stay for long, and the directory too
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

// RestartFrom is the sequence number from which on the client that leaves the directory empty deletes it, so that
// counting starts again. Past the end of the counter, 2³¹ - 1, servers repeat a number or go negative, and two
// contenders can hold at once. It is a variable for tests.
var RestartFrom int32 = 1 << 30

// remove has the node removed for certain. ctx is for hooks alone.
func (p *place) remove(ctx context.Context) *session.Removal {
	r := p.node.Remove(ctx)
	if p.restart {
		go func() {
			<-r.Done()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.s.Timeout())
			defer cancel()
			_ = p.s.Delete(ctx, p.q.dir, -1) // fails if others are there, or it is gone
		}()
	}
	return r
}
