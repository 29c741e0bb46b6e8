package queue

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
)

// attempt is one contender: one node in one session, from before the node may exist until it is
// granted or certain to be gone. One goroutine runs it. The package documentation has a
// diagram.
type attempt struct {
	*ownNode
	entry entry

	creation plumbing.Creation // the last create that was sent; nil if none was
	config   config            // of the directory, as last read, if the kind has one
	policy   rule              // by the last listing
	slack    int               // the policy's, or the former one if the attempt is outdated
	outdated bool              // see renew.go
	renewed  bool              // this attempt has renewed the place of another
	position int               // contenders ahead at entry; -1 until known
	children plumbing.Watch    // set by the last listing on the children, if the place may be kept; otherwise nil
	crowded  bool              // by the last listing, others wait for our node
	entering time.Duration     // how long the create took
	waited   bool              // the attempt had to wait, so its place is not kept
	after    int64             // a transaction (zxid) that is older than the node
	granted  bool

	// Of entrants.enter.
	names    []string // the listing, if unlisted and failed are nil
	unlisted error    // of the listing that was sent with the create
	failed   error    // why the attempt cannot go on although its node was created

	configW plumbing.Watch // on the directory, if the kind has a configuration
	wake    chan struct{}  // receives when a watch ends; has room for one

	pace  rounds.Pace // of the rounds that get the attempt no further
	least int         // contenders ahead at the best listing so far
	rival int64       // unfair: the czxid of the newest node that was in the way

	head    int       // of the nodes in the way, how many are the first of the queue: see tail.head
	view    *view     // of the last wait; nil if there was none
	entered time.Time // when the name of the node was known

	place place // of the lease or attempt whose place is shared or renewed
}

// ownNode is the node of a contender, and what it takes to guard and to delete it. It is that of the
// attempt, and after the grant that of the turn.
type ownNode struct {
	q     *Queue
	s     *session.Session
	r     *Request       // never changes any more
	id    string         // in the node's name, to find it again; each attempt has a new one
	node  Node           // zero until it is known
	path  string         // of the node; "" until it is known
	doubt bool           // a create's reply was lost: there may be several nodes
	own   plumbing.Watch // the last watch that was set on the node; nil if none was
	czxid int64          // of the node; 0 until known
	claim plumbing.Claim // unfair: to the one node; otherwise nil
}

// entry is how an attempt enters the queue. The zero value enters at the end, and waits.
type entry struct {
	try    bool                    // fail with ErrBusy in place of waiting for others
	look   bool                    // fail with errAhead in place of waiting for others; the attempt stands
	beside *Lease                  // share the place of this lease
	renews *attempt                // take the place of this attempt, which is outdated
	stands *attempt                // go on with this attempt, which has entered already
	lazy   bool                    // the place may be kept
	before *turn                   // of the same Local: its node is about to be deleted; nil if there is none
	placed func()                  // called when the first create was answered
	leaves func(<-chan struct{})   // if not nil, called when an attempt leaves, with what is closed once its node is gone
	view   *atomic.Pointer[view]   // if not nil, gets the view of each wait
	listed *atomic.Pointer[listed] // if not nil, gets what each listing shows
}

func newAttempt(q *Queue, s *session.Session, r *Request, how *entry) *attempt {
	a := &attempt{
		ownNode:  &ownNode{q: q, s: s, r: r, id: uuid.NewString()},
		entry:    *how,
		position: -1,
		least:    math.MaxInt,
		wake:     make(chan struct{}, 1),
	}
	if old := how.renews; old != nil {
		a.renewed, a.position, a.place = true, old.position, old.place
		if old.czxid != 0 && !a.place.known {
			a.place = place{known: true, token: old.czxid}
		}
	}
	return a
}

// errAhead says that an attempt may not go yet. It has not left the queue.
var errAhead = errors.New("others are ahead")

// run returns nil when the attempt is granted. If it returns an error, panics or ends the
// goroutine, the attempt leaves the queue, except that an outdated one stands until another has
// renewed its place.
func (a *attempt) run(ctx context.Context) error {
	if a.r.Kind.Unfair {
		return a.barge(ctx)
	}
	return a.queueUp(ctx)
}

// queueUp is the loop of all fair kinds: enter, list, decide, wait.
func (a *attempt) queueUp(ctx context.Context) (err error) {
	defer func() { a.leaveUnlessGranted(ctx, err) }()
	names, err := a.enter(ctx)
	for err == nil {
		var ahead *tail
		if ahead, err = a.decide(ctx, names); err != nil {
			break
		}
		if ahead.mayGo() {
			return a.proceed()
		}
		if a.follows(ahead) {
			if names, err = a.succession(ctx); err != nil {
				break
			}
			continue
		}
		if a.entry.look {
			a.names = names
			return errAhead
		}
		if a.entry.try {
			return a.outlast(ctx, ahead)
		}
		if err = a.slow(ctx, ahead.count() < a.least); err != nil {
			break
		}
		a.least = min(a.least, ahead.count())
		var granted bool
		began := time.Now()
		if granted, err = a.wait(ctx, ahead); err != nil {
			break
		}
		a.pace.Rested(time.Since(began))
		if granted {
			return a.proceed()
		}
		names, err = a.list(ctx)
	}
	return err
}

// enter creates the node, and returns a listing that was made after that. If the attempt has entered
// together with others, enter returns what it has found then.
func (a *attempt) enter(ctx context.Context) (names []string, err error) {
	if a.entry.stands == nil {
		if err := (entrants{{a, ctx}}).enter(ctx); err != nil {
			return nil, err
		}
	}
	names, a.names = a.names, nil // so that it can be freed
	return names, a.failed
}

// proceed follows when nothing is in the way.
func (a *attempt) proceed() error {
	if a.outdated {
		return errOutdated
	}
	return a.grant()
}

// grant asks the clock, last: listings and events count only while the session is certain. Once
// it has returned nil, the attempt never changes any more. Its node is the turn's from then on.
func (a *attempt) grant() error {
	err := a.s.Err()
	a.granted, a.view = err == nil, nil
	return err
}

// slow paces the rounds that get the attempt no further. Nodes ahead only leave, so each listing
// should show fewer of them. Now and then it does not: a node's data has changed, or the
// connection was lost. The pace keeps the attempt from spinning if a server says that each time. It
// must not delay an attempt whose watch has told of a change now and then: a release could follow.
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

// until waits for an answer, or until ctx or the session ends. If the answer is there, until
// returns nil whatever else has happened, so that the way out need not ask for it again.
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
