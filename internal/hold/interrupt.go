package hold

import (
	"context"
	"slices"
	"sync"
)

// calls are the calls of Get that are under way, as something to interrupt.
type calls struct {
	mu   sync.Mutex
	open context.Context // of those that have begun since the last interruption
	end  context.CancelFunc
}

func newCalls() *calls {
	c := &calls{}
	c.open, c.end = context.WithCancel(context.Background())
	return c
}

func (c *calls) current() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

func (c *calls) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
	c.open, c.end = context.WithCancel(context.Background())
}

// contend calls get. It returns errSlotLost, and has left the queue, if the call was
// interrupted.
func (h *Holds[L]) contend(ctx context.Context, get Get[L], try bool) (L, error) {
	if h.calls == nil || try { // a try waits for no holder
		return get(ctx)
	}
	inside, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(h.calls.current(), cancel)
	defer stop()
	if h.lostInSlot() != nil { // perhaps before there was something to interrupt
		var none L
		return none, errSlotLost
	}
	lease, err := get(inside)
	if err != nil && inside.Err() != nil && ctx.Err() == nil {
		return lease, errSlotLost
	}
	return lease, err
}

// interruptAtLoss has the calls of Get interrupted if a hold ends otherwise than by its Unlock.
func (h *Holds[L]) interruptAtLoss(held *Hold[L]) {
	if h.calls == nil {
		return
	}
	over, cancel := held.Lease.Context(context.Background())
	context.AfterFunc(over, func() {
		defer cancel()
		h.mu.Lock()
		stands := slices.Contains(h.all, held)
		h.mu.Unlock()
		if stands {
			h.calls.interrupt()
		}
	})
}
