package place

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/kinds"
)

// attempt is one contender: one node in one session, from before the node may exist until it is
// granted or certain to be gone. One goroutine runs it. The package documentation has a
// diagram.
type attempt struct {
	*ownNode
	entry entry

	creation *core.Creation // the last create that was sent; nil if none was, or once it has told the node's name
	config   kinds.Config   // of the directory, as last read, if the kind has one
	policy   rule           // by the last listing
	slack    int            // the policy's, or the former one if the attempt is outdated
	position int            // contenders ahead at entry; -1 until known
	children *core.Watch    // set by the last listing on the children, if the place may be kept; otherwise nil
	entering time.Duration  // how long the create took
	after    int64          // a transaction (zxid) that is older than the node

	outdated bool // see renew.go
	renewed  bool // this attempt has renewed the place of another
	crowded  bool // by the last listing, others wait for our node
	waited   bool // the attempt had to wait, so its place is not kept
	granted  bool

	// Of entrants.enter.
	names    []string // the listing, if unlisted and failed are nil
	unlisted error    // of the listing that was sent with the create
	failed   error    // why the attempt cannot go on although its node was created

	configW *core.Watch   // on the directory, if the kind has a configuration
	wake    chan struct{} // receives when there is something to look at; has room for one
	waiting *wait         // nil while the attempt does not wait

	pace  *rounds.Pace // of the rounds that get the attempt no further; nil if there were none
	least int          // contenders ahead at the best listing so far

	view    *view     // of the last wait; nil if there was none
	entered time.Time // when the name of the node was known

	place place // of the lease or attempt whose place is shared or renewed
}

// ownNode is the node of a contender, and what it takes to guard and to delete it. It is that of the
// attempt, and after the grant that of the turn.
type ownNode struct {
	q     *Queue
	s     *core.Session
	r     *Request       // never changes any more
	id    string         // in the node's name, to find it again; each attempt has a new one
	node  kinds.Node     // zero until it is known
	path  string         // of the node; "" until it is known
	doubt bool           // a create's reply was lost: there may be several nodes
	lost  *core.Creation // the last create whose reply was lost, until it is known what became of it; otherwise nil
	own   *core.Watch    // the last watch that was set on the node; nil if none was
	czxid int64          // of the node; 0 until known
}

// entry is how an attempt enters the queue. The zero value enters at the end, and waits.
type entry struct {
	try    bool                    // fail with ErrBusy in place of waiting for others
	look   bool                    // return errAhead before the wait: another goroutine goes on with the attempt
	lazy   bool                    // the place may be kept
	beside *Lease                  // share the place of this lease
	renews *attempt                // take the place of this attempt, which is outdated
	before *turn                   // of the same Local: its node is about to be deleted; nil if there is none
	placed func()                  // called when the first create was answered
	sent   func(depart func())     // if not nil, called for each create, with what says that its node is about to go
	view   *atomic.Pointer[view]   // if not nil, gets the view of each wait
	listed *atomic.Pointer[listed] // if not nil, gets what each listing shows
}

func newAttempt(q *Queue, s *core.Session, r *Request, how *entry) *attempt {
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

// errAhead says that an attempt may not go yet. It has not left the queue. It waits (see block), or is to be handed
// on before it does (see look of entry).
var errAhead = errors.New("others are ahead")

// run returns nil when the attempt is granted. If it returns an error, panics or ends the
// goroutine, the attempt leaves the queue, except that an outdated one stands until another has
// renewed its place. With errAhead it stands too: the caller calls block, and then run again.
//
// It enters, lists, decides and waits, again and again. It returns errAhead while there is nothing to do but wait, and goes on
// from there when it is called again.
func (a *attempt) run(ctx context.Context) (err error) {
	defer func() { a.leaveUnlessGranted(ctx, err) }()
	granted := false
	var names []string
	if a.waiting == nil {
		names, err = a.enter(ctx)
	} else {
		granted, names, err = a.resume(ctx)
	}
	for err == nil && !granted {
		granted, names, err = a.compete(ctx, names)
	}
	if err != nil {
		return err
	}
	return a.proceed()
}

// compete decides by a listing. If others are in the way, it waits for them. It returns true if nothing is in
// the way, and otherwise the next listing.
func (a *attempt) compete(ctx context.Context, names []string) (granted bool, next []string, err error) {
	ahead, err := a.decide(ctx, names)
	switch {
	case err != nil:
		return false, nil, err
	case ahead.mayGo():
		return true, nil, nil
	case a.follows(ahead):
		next, err = a.succession(ctx)
		return false, next, err
	case a.r.Kind.Unfair && !a.entry.try:
		a.names = names
		return false, nil, errTaken
	case a.entry.look:
		a.names = names
		return false, nil, errAhead
	case a.entry.try:
		err = a.outlast(ctx, ahead)
		return err == nil, nil, err
	}
	if err := a.slow(ctx, ahead.count() < a.least); err != nil {
		return false, nil, err
	}
	a.least = min(a.least, ahead.count())
	if err := a.startWait(ctx, ahead); err != nil {
		return false, nil, err
	}
	if a.waiting == nil {
		next, err = a.list(ctx)
		return false, next, err
	}
	return a.resume(ctx)
}

// resume goes on with a wait. It returns true when nothing is in the way any more, and otherwise a listing.
func (a *attempt) resume(ctx context.Context) (granted bool, names []string, err error) {
	if granted, err = a.goOn(ctx); granted || err != nil {
		return granted, nil, err
	}
	names, err = a.list(ctx)
	return false, names, err
}

// enter creates the node, and returns a listing that was made after that. If the attempt has entered
// together with others, enter returns what it has found then.
func (a *attempt) enter(ctx context.Context) (names []string, err error) {
	if !a.created() {
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
	a.granted = err == nil
	if a.granted {
		if a.own != nil && a.plain() {
			a.own.Say(core.OwnerFirst)
		}
	}
	a.view = nil
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
	if a.pace == nil {
		a.pace = a.q.newPace()
	}
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
