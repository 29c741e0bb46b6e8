package faultmatrix

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/turnstile-go/turnstile/queue"
)

// referee checks, outside of ZooKeeper, that no two clients that exclude each other hold at one
// moment.
//
// That cannot be kept where a session is ended by force: the server lets the next contender in at
// once, and the holder hears of it a moment later. Then fencing tokens must tell the two apart.
type referee struct {
	forced bool // fixed before the first enters

	mu    sync.Mutex
	holds map[string][]*hold // by whose; those of one client do not exclude each other
	late  bool               // there were two, by force
}

// enter is called as soon as a lock is granted. It first asks the other holds, and then the new one.
// All that report held were held at the same time.
func (r *referee) enter(ctx context.Context, who string, h *hold) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	for other, holds := range r.holds {
		for _, o := range holds {
			switch {
			case other == who || o.Err() != nil || h.Err() != nil:
			case r.forced:
				r.late = true
				err = errors.Join(err, fenced(ctx, o, h))
			default:
				err = errors.Join(err, fmt.Errorf("two holders: %s was let in while %s held", who, other))
			}
		}
	}
	if r.holds == nil {
		r.holds = make(map[string][]*hold)
	}
	r.holds[who] = append(r.holds[who], h)
	return err
}

// fenced checks that the tokens of a holder that left before another one came are lower. A holder
// that has not been given a token has none to write with.
func fenced(ctx context.Context, before, after *hold) error {
	for i, l := range before.leases {
		old, known := tokenNow(l)
		if !known || i >= len(after.leases) {
			continue
		}
		token, err := after.leases[i].Token(ctx)
		if err != nil {
			return err
		}
		if token <= old {
			return fmt.Errorf("token %d of %s is not above %d, of one before", token, l.Path(), old)
		}
	}
	return nil
}

// tokenNow returns a lease's token if it is known already.
func tokenNow(l *queue.Lease) (int64, bool) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	token, err := l.Token(ctx)
	return token, err == nil
}
