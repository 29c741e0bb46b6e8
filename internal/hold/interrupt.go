package hold

import (
	"context"
	"slices"
	"sync"
)

// interrupter ends the contexts of all calls of Get that have begun since the last interruption.
type interrupter struct {
	mu      sync.Mutex
	current context.Context // ends at the next interruption
	end     context.CancelFunc
}

func newInterrupter() *interrupter {
	i := &interrupter{}
	i.current, i.end = context.WithCancel(context.Background())
	return i
}

// next returns a context that ends at the next interruption.
func (i *interrupter) next() context.Context {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.current
}

func (i *interrupter) interrupt() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.end()
	i.current, i.end = context.WithCancel(context.Background())
}

// contend calls Get. It returns errSlotLost if the call was interrupted; the call has left the
// queue by then.
func (h *Holds[L]) contend(ctx context.Context, r request[L]) (L, error) {
	if h.getting == nil || r.try { // a try waits for no holder
		return r.get(ctx)
	}
	inside, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(h.getting.next(), cancel)
	defer stop()
	if h.lostInSlot() != nil { // perhaps lost before there was a call to interrupt
		var none L
		return none, errSlotLost
	}
	lease, err := r.get(inside)
	if err != nil && inside.Err() != nil && ctx.Err() == nil {
		return lease, errSlotLost
	}
	return lease, err
}

// interruptAtLoss interrupts the calls of Get when a hold, which by has begun, ends before its Unlock.
// If a hook panics or ends the goroutine, the hold is given back.
func (h *Holds[L]) interruptAtLoss(held *Hold[L], by via) {
	if h.getting == nil {
		return
	}
	begun := false
	defer func() {
		if !begun {
			h.remove(held, by) // the caller gives up the lease
		}
	}()
	over, cancel := held.Lease.Context(context.Background())
	context.AfterFunc(over, func() {
		defer cancel()
		if slices.Contains(h.standing(), held) {
			h.getting.interrupt()
		}
	})
	begun = true
}
