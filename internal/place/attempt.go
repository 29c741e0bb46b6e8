package place

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/kinds"
)

// attempt takes a place up to the grant, or out of the queue. One goroutine runs it. It carries out what package decide
// says, and tells it what has come of that.
type attempt struct {
	*place
	entry Entry

	creation *core.Creation // the last create that was sent; nil if none was, or once it has told the node's name
	config   kinds.Config   // of the directory, as last read, if the kind has one
	policy   decide.Rule    // by the last listing
	slack    int            // the policy's, or the former one if the place is outdated
	position int            // contenders ahead at entry; -1 until known
	children *core.Watch    // set by the last listing on the children, if the place may be kept; otherwise nil
	after    int64          // a transaction (zxid) that is older than the node
	czxid    int64          // of the node; 0 until known

	outdated bool // by the last listing: see renew.go
	renewed  bool // this attempt has renewed the place of another
	crowded  bool // by the last listing, others wait for our node
	founded  bool // this attempt has made the directory
	waited   bool // the attempt had to wait, so its place is not kept

	follows *Turn // the attempt waits for the node of this turn of its sharer alone, which is no wait; nil otherwise

	names    []string // the listing to judge, if unlisted and failed are nil
	unlisted error    // of the listing that was sent with the create
	failed   error    // why the attempt cannot go on although its node was created

	ahead   *decide.Tail  // by the last listing, until the wait for them has begun
	configW *core.Watch   // on the directory, if the kind has a configuration
	wake    chan struct{} // receives when there is something to look at; has room for one
	waiting *wait         // nil while the attempt does not wait

	limited context.Context // bounds the wait of a try; nil until that has begun
	end     context.CancelFunc

	pace  *rounds.Pace // of the rounds that get the attempt no further; nil if there were none
	least int          // contenders ahead at the best listing so far

	view    *view     // of the last wait; nil if there was none
	entered time.Time // when the name of the node was known

	seat *seat // the token of a place that is shared or renewed; nil if it is neither
}

// Entry is how an attempt enters the queue. The zero value enters at the end, and waits.
type Entry struct {
	Try    bool     // look first, and fail with ErrBusy in place of waiting for others
	Also   []Ask    // what a try looks at too before it enters
	Looked bool     // a try that need not look
	Lazy   bool     // the place may be kept
	Before *Turn    // of the same sharer: its node is about to be deleted; nil if there is none
	Shown  *Shown   // for those that share the acquisition; nil if nobody does
	beside *Lease   // share the place of this lease
	renews *attempt // take the place of this attempt, which is outdated
}

func newAttempt(q *Queue, s *core.Session, r *Request, how *Entry) *attempt {
	a := &attempt{
		place:    &place{q: q, s: s, r: r, id: uuid.NewString()},
		entry:    *how,
		position: -1,
		least:    math.MaxInt,
		wake:     make(chan struct{}, 1),
	}
	if old := how.renews; old != nil {
		a.renewed, a.position, a.seat = true, old.position, old.seat
		if old.czxid != 0 && a.seat == nil {
			a.seat = &seat{known: true, token: old.czxid}
		}
	}
	return a
}

// within returns the context for what is done next: that of the caller, which a try bounds once it has to wait.
func (a *attempt) within(ctx context.Context) context.Context {
	if a.limited == nil {
		return ctx
	}
	return a.limited
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

// wait is the wait of an attempt whose watches are set. The nodes that it waits for are in the attempt's view.
type wait struct {
	rest  int         // what the nodes in the way weigh that are not watched
	began time.Time   // when the watches were set
	stops []func()    // cancel what the watches tell
	told  *watching   // the calls of the Watch hook; nil without one
	timer *time.Timer // calls ring
	due   atomic.Bool // the timer has run
	late  bool        // it has run before
}

// remover starts a guaranteed delete.
type remover func(ctx context.Context, path string) *core.Removal
