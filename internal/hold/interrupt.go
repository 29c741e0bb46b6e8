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

// progress says how far a Get has come.
type progress int

const (
	got         progress = iota // a lease, or an error
	waiting                     // it waits for others
	interrupted                 // it has left the queue, since the hold in the slot is lost
)

// contend gets the lease.
func (h *Holds[L]) contend(ctx context.Context, r *request[L]) (lease L, _ progress, err error) {
	switch {
	case r.try:
		lease, err = h.Try(ctx)
		return lease, got, err
	case h.getting != nil:
		return h.interruptibly(ctx)
	case r.getting == nil:
		r.getting = h.Get(ctx)
	}
	lease, waits, err := r.getting.Next()
	if waits {
		return lease, waiting, nil
	}
	r.getting = nil
	return lease, got, err
}

// interruptibly gets the lease, and can be interrupted.
func (h *Holds[L]) interruptibly(ctx context.Context) (lease L, _ progress, err error) {
	inside, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(h.getting.next(), cancel)
	defer stop()
	if h.lostInSlot() != nil { // perhaps lost before there was a call to interrupt
		return lease, interrupted, nil
	}
	get := h.Get(inside)
	for waits := true; waits; {
		if lease, waits, err = get.Next(); waits {
			get.Wait()
		}
	}
	if err != nil && inside.Err() != nil && ctx.Err() == nil {
		return lease, interrupted, nil
	}
	return lease, got, err
}

// interruptAtLoss interrupts the calls of Get when a hold ends before its Unlock.
func (h *Holds[L]) interruptAtLoss(held *Hold[L]) {
	if h.getting == nil {
		return
	}
	held.Lease.AfterEnd(func() {
		if slices.Contains(h.standing(), held) {
			h.getting.interrupt()
		}
	})
}
