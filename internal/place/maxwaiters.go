package place

import (
	"fmt"
	"path"

	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/kinds"
)

// An acquisition that waits can bound the queue that it enters (Request.MaxWaiters). That is asked once, by its first
// listing. From then on it is in: a listing that shows more, a renewal, and the next session after a loss change nothing.

// SetMaxWaiters is WithMaxWaiters. Its error matches ErrInvalid.
func (r *Request) SetMaxWaiters(n int) error {
	if n < 0 {
		return misuse.Invalidf("WithMaxWaiters(%d): want 0 or more", n)
	}
	r.OwnTerms().MaxWaiters = &n
	return nil
}

// letIn fails with ErrBusy if the attempt has just entered behind more contenders than it wants to. Places that may only
// be kept do not count as long as nobody is known to want the lock.
func (a *attempt) letIn(ahead *decide.Tail) error {
	most := a.r.MaxWaiters
	if a.entry.in || most == nil || ahead.Count() <= *most || ahead.MayGo() || !a.inUse(ahead) {
		a.entry.in = true
		return nil
	}
	nearest := ahead.Last[len(ahead.Last)-1].Node
	return tooMany(ahead.Count(), *most, kinds.Contender{Path: path.Join(a.q.dir, nearest.Name), Sequence: nearest.Sequence})
}

// letInLocked fails with ErrBusy if a call is sure to have more ahead of it than it wants to: others that hold or wait
// here, and those ahead of the contender that all share, as far as that watches them. l.mu is held.
func (l *Local) letInLocked() error {
	most := l.r.MaxWaiters
	if most == nil {
		return nil
	}
	n := 0
	if !l.many { // readers are not in each other's way
		n = l.waiting.Len()
		if l.trying || l.turn != nil && l.turn.is() != decide.Keeping {
			n++
		}
	}
	if by := l.shared; by != nil && (!l.many || by.open()) {
		if v := by.view.Load(); v != nil {
			_, standing := v.named()
			n += standing
		}
	}
	if n > *most {
		return tooMany(n, *most, kinds.Contender{})
	}
	return nil
}

func tooMany(ahead, most int, who kinds.Contender) error {
	return &kinds.WaitError{Err: ErrBusy, Ahead: who, Reason: fmt.Sprintf("%d ahead, and WithMaxWaiters allows %d", ahead, most)}
}
