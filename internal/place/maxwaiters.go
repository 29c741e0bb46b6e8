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
	if a.entry.In || most == nil || ahead.Count() <= *most || ahead.MayGo() || !a.inUse(ahead) {
		a.entry.In = true
		return nil
	}
	nearest := ahead.Last[len(ahead.Last)-1].Node
	return TooMany(ahead.Count(), *most, kinds.Contender{Path: path.Join(a.q.dir, nearest.Name), Sequence: nearest.Sequence})
}

// TooMany returns an ErrBusy that says how many contenders are ahead, and who is.
func TooMany(ahead, most int, who kinds.Contender) error {
	return &kinds.WaitError{Err: ErrBusy, Ahead: who, Reason: fmt.Sprintf("%d ahead, and WithMaxWaiters allows %d", ahead, most)}
}
