package hold

import (
	"context"
	"errors"

	"github.com/turnstile-go/turnstile/internal/news"
	"github.com/turnstile-go/turnstile/internal/place"
)

// ErrNotHeld is returned by Unlock when there is no Lock to give back.
var ErrNotHeld = errors.New("lock is not held")

// Lease is what a hold keeps until its end: a [place.Lease], or several as one. After a loss
// Release and Unlock return an error that says so. Release returns [place.ErrReleasePending] only if there
// is no other error, and Unlock never does.
type Lease interface {
	Err() error
	Done() <-chan struct{}
	AfterEnd(f func())
	// Work returns the context for work under the lease. It ends with parent, with the lease, and at a revocation.
	Work(parent context.Context) (context.Context, context.CancelFunc)
	Revocation() *place.Revocation
	Release(ctx context.Context, end place.End) error
	Unlock(end place.End, wait bool) error
}

// Hold is one lease and the calls that share it: the Lock or Do that got it, and those by which
// the same owner entered it again. It ends when each of them has been given back.
type Hold[L Lease] struct {
	Lease L
	owner *Owner    // nil: nobody enters it again
	calls [2]int32  // not yet given back, by via; guarded by Holds.mu
	ended news.News // that it has ended
}

// via is the method by which a call entered a hold. Unlock gives back a Lock, and never a Do,
// which gives back itself.
type via int

const (
	viaLock via = iota
	viaDo
)

// over reports whether all calls have been given back. Holds.mu must be held.
func (h *Hold[L]) over() bool { return h.calls[viaLock]+h.calls[viaDo] == 0 }
