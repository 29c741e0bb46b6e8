package place

import (
	"fmt"
	"sync"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/kinds"
)

// place is one node in one session, from before its first create is sent until it is being deleted for certain. An
// attempt has it up to the grant, and a turn after that. Package decide has its states, and says what follows what.
type place struct {
	q          *Queue
	s          *core.Session
	r          *Request       // never changes any more
	id         string         // in the node's name, to find it again; each place has a new one
	node       kinds.Node     // zero until it is known
	path       string         // of the node; "" until it is known
	doubt      bool           // a create's reply was lost: there may be several nodes
	unanswered *core.Creation // the last create whose reply was lost, until it is known what became of it; otherwise nil
	own        *core.Watch    // the last watch that was set on the node; nil if none was

	mu    sync.Mutex
	state decide.State
}

// step takes an input, and returns what follows. It returns false if nothing does, since the place has ended meanwhile.
func (p *place) step(in decide.Input) (decide.Move, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stepLocked(in)
}

func (p *place) stepLocked(in decide.Input) (decide.Move, bool) {
	move, ok := decide.Step(p.state, in)
	if ok {
		p.state = move.To
	}
	return move, ok
}

// must is step for an input that cannot come at another time.
func (p *place) must(in decide.Input) decide.Move {
	move, ok := p.step(in)
	if !ok {
		panic(fmt.Sprintf("place %s is %v, and hears: %v", p.path, p.is(), in))
	}
	return move
}

// is returns the state.
func (p *place) is() decide.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// seat is what an attempt knows of the place that it shares with a lease, or renews. The two
// nodes of a place have one sequence number and one token: the token of the first node. The
// second node is younger than the waiters behind the place, so its own transaction id would
// be above the token of the next holder.
type seat struct {
	watch *core.Watch // on the lease's node; set only if the token was not known

	known    bool // token or tokenErr is set
	token    int64
	tokenErr error
}

// closed is a channel that is closed.
var closed = func() <-chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()
