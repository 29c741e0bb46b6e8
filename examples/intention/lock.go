package main

import (
	"context"
	"errors"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Mode says what a holder of a table's lock may do. A lock of a row has the modes S and X.
type Mode int

// The modes, as databases name them.
const (
	IS Mode = iota // intention shared: the holder locks rows, to read them
	IX             // intention exclusive: the holder locks rows, to read or write them
	S              // shared: the holder reads all rows
	X              // exclusive: the holder reads and writes all rows
)

// together says which modes two holders may have at once.
var together = [...][4]bool{
	//    IS     IX     S      X
	IS: {true, true, true, false},
	IX: {true, true, false, false},
	S:  {true, false, true, false},
	X:  {false, false, false, false},
}

// prefixes are the words for the modes in the names of nodes, such as _c_<uuid>-ix-0000000007.
var prefixes = []string{IS: "is-", IX: "ix-", S: "s-", X: "x-"}

// intention is the kind of lock. It names the prefixes of all modes, since a kind does not see contenders
// whose prefixes it does not name.
var intention = &queue.Kind{
	Name:     "intention",
	Prefixes: prefixes,
	Policy: func(me queue.Node) queue.Policy {
		mine := modeOf(me)
		return queue.Policy{Weight: func(ahead queue.Node) int {
			if together[mine][modeOf(ahead)] {
				return 0
			}
			return 1
		}}
	},
}

// modeOf returns the mode of a contender.
func modeOf(n queue.Node) Mode {
	for mode, prefix := range prefixes {
		if n.Prefix == prefix {
			return Mode(mode)
		}
	}
	return X // not reached: a kind sees its own prefixes only
}

// Lock is an intention lock in one mode.
type Lock struct {
	*queue.Queue
	mode Mode
}

// NewLock returns the lock at path in one mode. Locks at one path, in all processes, are the same lock.
func NewLock(m *session.Manager, path string, mode Mode) (*Lock, error) {
	q, err := queue.New(m, path)
	if err != nil {
		return nil, err
	}
	return &Lock{q, mode}, nil
}

// Acquire waits until no contender that came earlier has a mode that excludes this one.
func (l *Lock) Acquire(ctx context.Context) (*queue.Lease, error) {
	return l.Queue.Acquire(ctx, l.request())
}

// TryAcquire is Acquire without that wait. It returns [queue.ErrBusy] if it would have to wait.
func (l *Lock) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return l.Queue.TryAcquire(ctx, l.request())
}

// Do calls f while it holds the lock. The context of f ends when the lock is lost.
func (l *Lock) Do(ctx context.Context, f func(context.Context) error) (err error) {
	lease, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	inside, cancel := lease.Context(ctx)
	defer func() {
		cancel()
		released := lease.Release(ctx)
		if errors.Is(released, queue.ErrReleasePending) {
			released = nil // ctx has ended: the servers will confirm it
		}
		err = errors.Join(err, released)
	}()
	return f(inside)
}

func (l *Lock) request() queue.Request {
	return queue.Request{Kind: intention, Prefix: prefixes[l.mode]}
}
