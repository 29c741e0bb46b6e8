package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
	"golang.org/x/sync/errgroup"
)

// attempt is one contender: one node in one session, from before it may exist until it
// is a lease or certain to be gone. One goroutine runs it.
type attempt struct {
	q     *Queue
	s     *session.Session
	r     Request
	entry entry
	id    string // new for each attempt; how the node is found again

	creation plumbing.Creation // the last create sent; nil: none was
	doubt    bool              // a create's reply was lost: there may be more nodes than one
	node     Node              // ours; zero until known
	config   Config            // of the directory, as last read; where the kind has any
	policy   Policy            // as last decided by
	slack    int               // as last decided by: the policy's, or that of before for one that is outdated
	outdated bool              // see renew.go
	before   string            // the id of the node whose place this one has renewed; "" for none
	position int               // contenders ahead at entry; -1 until known
	after    int64             // a transaction that is older than our node
	granted  bool              // it has become a lease

	own     plumbing.Watch            // on our node; nil until it was set
	czxid   int64                     // our node's, with own
	seen    map[string]plumbing.Watch // those of the last wait, on those ahead, by name
	configW plumbing.Watch            // on the directory, where the kind has a configuration
	wake    chan struct{}             // poked by each watch that ends; room for one

	pace  rounds.Pace // of this attempt's rounds that get it no further
	least int         // contenders ahead at the best listing so far
	rival int64       // the newest node seen in the way of an unfair kind, by its czxid

	claim plumbing.Claim // to the node of an unfair kind; nil for the others
	place place          // that of another lease, beside which this is entered, or which this renews
}

// entry is how an attempt enters the queue.
type entry struct {
	try    bool     // not to wait for others
	beside *Lease   // with this one's sequence, next to its node; nil: at the end
	renews *attempt // in the place of this one, which is outdated; nil: of none
	first  func()   // called when its first create has been answered; nil: nothing is
}

func newAttempt(q *Queue, s *session.Session, r Request, how entry) *attempt {
	a := &attempt{
		q: q, s: s, r: r, entry: how,
		id:       uuid.NewString(),
		position: -1,
		least:    math.MaxInt,
		wake:     make(chan struct{}, 1),
	}
	if old := how.renews; old != nil {
		a.before, a.position, a.place = old.id, old.position, old.place
		if old.czxid != 0 && !a.place.known {
			a.place = place{known: true, token: old.czxid}
		}
	}
	return a
}

// run is the only loop: enter, list, decide, watch. It returns nil when granted. Every other way
// out leaves the queue: an error, a hook or a policy that panics, and one that ends the
// goroutine.
func (a *attempt) run(ctx context.Context) (err error) {
	defer func() { a.leaveUnlessGranted(ctx, err) }()
	names, err := a.enter(ctx)
	for err == nil {
		var ahead []blocker
		if ahead, err = a.decide(ctx, names); err != nil {
			break
		}
		if mayGo(ahead, a.slack) {
			return a.proceed()
		}
		if a.entry.try {
			return ErrBusy
		}
		if err = a.slow(ctx, len(ahead) < a.least); err != nil {
			break
		}
		a.least = min(a.least, len(ahead))
		var granted bool
		if granted, err = a.wait(ctx, ahead); err != nil {
			break
		}
		if granted {
			return a.proceed()
		}
		names, err = a.list(ctx)
	}
	return err
}

// slow waits before a round that follows one which got the attempt no further, as those ahead
// only leave. That happens now and then: a node's data changes, the connection is lost. A server
// that says so each time it is asked would keep the attempt asking.
func (a *attempt) slow(ctx context.Context, further bool) error {
	if further {
		a.pace.Reset()
		return nil
	}
	a.pace.New = plumbing.OfManager(a.q.m).Retry()
	if err := a.pace.Wait(ctx, a.s.Done()); err != nil {
		return err
	}
	return a.s.Err()
}

// enter makes the node, and returns a listing of the directory that was made after.
// The create and the listing are sent together; which comes first does not matter,
// since a listing counts only if it has the node.
func (a *attempt) enter(ctx context.Context) ([]string, error) {
	for tries := 1; ; tries++ {
		if a.entry.beside != nil {
			if err := a.askPlace(ctx); err != nil {
				return nil, err
			}
		}
		name, flags := a.newName()
		creation, err := a.startCreate(ctx, name, flags)
		if err != nil {
			return nil, err
		}
		if a.creation == nil {
			a.after = creation.After()
		}
		a.creation = creation
		names, listErr := a.survey(ctx)
		if err := a.until(ctx, creation.Done()); err != nil {
			return nil, err
		}
		if a.entry.first != nil {
			a.entry.first()
		}
		made, err := creation.Result()
		switch {
		case err == nil:
			if err := a.found(path.Base(made)); err != nil {
				return nil, err
			}
		case errors.Is(err, zk.ErrNoNode) && a.before != "":
			return nil, errDeleted // the node whose place was to be renewed
		case errors.Is(err, zk.ErrNoNode):
			// The directory is not there, or not any more: it can vanish at any
			// moment that it is empty.
			if err := plumbing.Of(a.s).MakeParents(ctx, a.q.dir); err != nil {
				return nil, err
			}
			if err := a.slow(ctx, false); err != nil {
				return nil, err
			}
			continue
		case errors.Is(err, zk.ErrConnectionClosed):
			lost := err
			if names, err = a.lookup(ctx); err != nil {
				return nil, err
			}
			if a.node.Name == "" {
				traceRetry(ctx, a.q.hooks(), "create", tries, lost)
				if err := a.slow(ctx, false); err != nil {
					return nil, err
				}
				continue
			}
			return names, nil
		default:
			return nil, err
		}
		if listErr == nil && slices.Contains(names, a.node.Name) {
			return names, nil
		}
		return a.list(ctx)
	}
}

func (a *attempt) startCreate(ctx context.Context, name string, flags int32) (plumbing.Creation, error) {
	if old := a.entry.renews; old != nil {
		if err := a.s.Err(); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return startRenewal(ctx, a.s, old, path.Join(a.q.dir, name), a.r.Data), nil
	}
	return plumbing.Of(a.s).StartCreate(ctx, path.Join(a.q.dir, name), a.r.Data, flags)
}

// newName returns what to create, and the flags of the create. Beside another lease, or in the place of another
// attempt, the sequence is that one's, and not the server's to give.
func (a *attempt) newName() (string, int32) {
	name := nameFor(a.id, a.r.Prefix, a.r.Weight)
	var other *attempt
	switch {
	case a.entry.beside != nil:
		other = a.entry.beside.t.a
	case a.entry.renews != nil:
		other = a.entry.renews
	default:
		return name, zk.FlagEphemeralSequential
	}
	return fmt.Sprintf("%s%010d", name, other.node.Sequence), zk.FlagEphemeral
}

// survey lists the directory, and reads its configuration where the kind has one. Both are
// asked for at once, and the answers may be of different moments: a configuration that is
// older than the listing decides nothing, since others may have come in or gone by the
// newer one. One that is newer does: those ahead only leave.
func (a *attempt) survey(ctx context.Context) ([]string, error) {
	again := rounds.Pace{New: plumbing.OfManager(a.q.m).Retry()}
	for {
		var g errgroup.Group
		configured, answered := a.r.Kind.Configured != nil, false
		if configured {
			g.Go(func() (err error) {
				a.config, err = a.q.configIn(ctx, a.s, a.r.Kind)
				answered = true
				return err
			})
		}
		names, stat, err := a.s.Children(ctx, a.q.dir)
		err = errors.Join(err, g.Wait())
		if configured && !answered && err == nil {
			err = errEnded
		}
		if err != nil || !configured || a.config.Changed >= stat.Mzxid {
			return names, err
		}
		if err := again.Wait(ctx, a.s.Done()); err != nil {
			return nil, err
		}
	}
}

// lookup finds out whether a create whose reply was lost has made the node. The server
// catches up with the leader first, and the same session goes on, so a node that is not
// there will hardly come: the servers close the lost connection when they take the new
// one. (Should one server have read it and be slow to act, decide removes what comes.) It
// adopts what it finds; of several, the first. (zk.Conn's own
// CreateProtectedEphemeralSequential does not sync, goes on in a new session, whose
// predecessor's node may still stand, and panics at a child called _c_x.)
func (a *attempt) lookup(ctx context.Context) ([]string, error) {
	a.doubt = true
	if err := a.s.Sync(ctx, a.q.dir); err != nil {
		return nil, err
	}
	names, err := a.survey(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, n := range parseNodes(names, a.r.Kind.Prefixes...) {
		switch {
		case n.ID != a.id:
		case a.node.Name == "":
			if err := a.found(n.Name); err != nil {
				return nil, err
			}
			plumbing.Of(a.s).Adopt(a.nodePath())
		default:
			a.isTwin(ctx, n)
		}
	}
	return names, nil
}

// found takes a node as ours.
func (a *attempt) found(name string) error {
	n, ok := ParseNode(name, a.r.Kind.Prefixes...)
	if !ok {
		return fmt.Errorf("queue: the server made %q of %q", name, nameFor(a.id, a.r.Prefix, a.r.Weight))
	}
	a.node = n
	if n.Sequence < 0 || n.Sequence == math.MaxInt32 {
		// From here on the server repeats the number, or goes back below all others.
		return fmt.Errorf("%w: it gave %d", ErrSequence, n.Sequence)
	}
	return nil
}

func (a *attempt) nodePath() string { return path.Join(a.q.dir, a.node.Name) }

// list returns a new listing, in which the node must be: the session has seen it.
func (a *attempt) list(ctx context.Context) ([]string, error) {
	names, err := a.survey(ctx)
	if errors.Is(err, zk.ErrNoNode) || err == nil && !slices.Contains(names, a.node.Name) {
		return nil, errDeleted
	}
	return names, err
}

// decide returns who of a listing is in the way.
func (a *attempt) decide(ctx context.Context, names []string) ([]blocker, error) {
	nodes, err := ofKind(parseNodes(names, a.r.Kind.Prefixes...), a.r.Kind)
	if err != nil {
		return nil, err
	}
	if err := a.rivals(ctx, names); err != nil {
		return nil, err
	}
	if err := a.judge(ctx); err != nil {
		return nil, err
	}
	if a.doubt {
		nodes = slices.DeleteFunc(nodes, func(n Node) bool { return a.isTwin(ctx, n) })
	}
	if beside := a.entry.beside; beside != nil {
		// A listing that has both shows that our node was there while nobody else could
		// come in; the other is no obstacle.
		i := slices.IndexFunc(nodes, func(n Node) bool { return n.Name == beside.t.a.node.Name })
		if i < 0 {
			return nil, beside.nodeGone()
		}
		nodes = slices.Delete(nodes, i, i+1)
		if err := a.learnPlace(ctx); err != nil {
			return nil, err
		}
	}
	if nodes, err = a.succeed(ctx, nodes); err != nil {
		return nil, err
	}
	ahead := blockers(a.node, nodes, a.policy)
	if a.position < 0 {
		a.position = len(ahead)
	}
	behind, err := a.behind(ctx, nodes)
	return append(ahead, behind...), err
}

// rivals fails if contenders of another kind of lock stand in line for the same thing in one
// of the directories beside our node. They make their nodes before they look for ours, as we
// do, so at least one of the two sees the other.
func (a *attempt) rivals(ctx context.Context, names []string) error {
	if a.r.Kind.Rivals == nil {
		return nil
	}
	for _, name := range a.r.Kind.Rivals(names) {
		children, _, err := a.s.Children(ctx, path.Join(a.q.dir, name))
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil:
			return err
		case len(parseNodes(children)) > 0:
			return fmt.Errorf("%w: a %s lock finds contenders below %s", ErrConflict, a.r.Kind.Name, path.Join(a.q.dir, name))
		}
	}
	return nil
}

// isTwin reports whether a node is another one of ours, made by a create whose reply was
// lost, and has it removed: it must not block us, nor those behind us.
func (a *attempt) isTwin(ctx context.Context, n Node) bool {
	if n.ID != a.id || n.Name == a.node.Name {
		return false
	}
	plumbing.Of(a.s).Remove(ctx, path.Join(a.q.dir, n.Name))
	return true
}

// until waits for an answer. One that is there is taken, whatever else has happened: what is
// known need not be asked for again on the way out.
func (a *attempt) until(ctx context.Context, answered <-chan struct{}) error {
	var err error
	select {
	case <-answered:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-a.s.Done():
		err = a.s.Err()
	}
	select {
	case <-answered:
		return nil
	default:
		return err
	}
}

// grant asks the clock, last: what a listing or an event says counts only while the session
// is certain. Nothing in the attempt changes any more once it has returned nil.
func (a *attempt) grant() error {
	err := a.s.Err()
	a.granted = err == nil
	return err
}

// leaveUnlessGranted is called, deferred, at every end of run and barge. An attempt that is
// outdated stands until the next one has renewed its place.
func (a *attempt) leaveUnlessGranted(ctx context.Context, why error) {
	if !a.granted && !errors.Is(why, errOutdated) {
		a.leave(ctx, why)
	}
}

// leave is the only way out that is not a lease. It returns once the removal of
// whatever was made, or is still to be made, is under way; that needs nobody's help and
// does not end with ctx.
func (a *attempt) leave(ctx context.Context, why error) {
	if old := a.entry.renews; old != nil {
		a.entry.renews = nil
		defer old.leave(ctx, why)
	}
	if a.creation == nil {
		a.unclaim()
		return
	}
	removed := make(chan struct{})
	go func() {
		defer close(removed)
		<-a.creation.Done()
		made, err := a.creation.Result()
		if err == nil {
			a.node, _ = ParseNode(path.Base(made), a.r.Kind.Prefixes...) // of a name of ours it cannot fail
		}
		a.doubt = a.doubt || plumbing.Uncertain(err)
		if a.node.Name != "" || a.doubt {
			<-a.remove(ctx).Done() // which ends the claim once the node is gone
			return
		}
		a.unclaim()
	}()
	// A try that was answered leaves nothing behind for the next one to find; and a node that
	// somebody deleted is not to take, among those that the session counts, the room of the
	// next one.
	if errors.Is(why, ErrBusy) || errors.Is(why, ErrConflict) || errors.Is(why, session.ErrInvalid) ||
		errors.Is(why, zk.ErrNoAuth) || errors.Is(why, errDeleted) || errors.Is(why, session.ErrTooManyNodes) {
		select {
		case <-removed:
		case <-ctx.Done():
		}
	}
}

// restartFrom is the sequence from which on whoever leaves the directory empty removes
// it, so that counting starts again long before the counter, which is a signed 32-bit
// one, is used up. Past its end servers repeat a number or go negative, and every peer
// has two holders. A variable for tests.
var restartFrom int32 = 1 << 30

// remove deletes the node for certain; and, where a create's reply was lost, every node
// with our id. ctx is for the hooks alone.
func (a *attempt) remove(ctx context.Context) plumbing.Removal {
	return a.removeAfter(ctx, nil)
}

// removeAfter is remove that waits until after is closed, in the background; nil: at once.
// Where a reply was lost it does not wait.
func (a *attempt) removeAfter(ctx context.Context, after <-chan struct{}) plumbing.Removal {
	if a.claim != nil {
		return a.claim.Remove(ctx, a.standing())
	}
	if a.node.Name == "" {
		return a.sweep(ctx)
	}
	if a.doubt {
		a.sweep(ctx)
	}
	r := plumbing.Of(a.s).RemoveAfter(ctx, a.nodePath(), after)
	// Negative is past the end of the counter, not before its beginning.
	if a.node.Sequence >= restartFrom || a.node.Sequence < 0 {
		go func() {
			<-r.Done()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.s.Timeout())
			defer cancel()
			_ = a.s.Delete(ctx, a.q.dir, -1) // others may be there, or it may be gone
		}()
	}
	return r
}

func (a *attempt) sweep(ctx context.Context) plumbing.Removal {
	return plumbing.Of(a.s).Sweep(ctx, a.q.dir, func(name string) bool {
		return strings.HasPrefix(name, protected+a.id+"-")
	})
}
