package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

type (
	labelKey   struct{}
	ownerKey   struct{}
	maxWaitKey struct{} // a time.Duration; negative: none
	leaseKey   struct{}
)

const longestLabel = 256 // in bytes

// WithLabel returns a context whose acquisitions have a label, such as "request 42". The label is in the contender's
// node, beside the id of the process, so that an operator sees what a lock is held for: see [Contender]. It is for locks
// of every kind.
//
// A label has at most 256 bytes. A longer one is shortened, and ends in "…". What cannot be printed is escaped, as
// "\x0a" for a line break. Nodes with data of your own, such as those of an election, and nodes that several acquisitions
// share (zklock.WithLocalHandover) have no label. Hooks have it in any case.
func WithLabel(ctx context.Context, text string) context.Context {
	misuse.Context(ctx, "queue: WithLabel")
	return context.WithValue(ctx, labelKey{}, tidy(text))
}

// labelOf returns the label of ctx, or "".
func labelOf(ctx context.Context) string {
	text, _ := ctx.Value(labelKey{}).(string)
	return text
}

// tidy escapes what cannot be printed, as in a string of Go, and shortens what is too long.
func tidy(text string) string {
	const more = "…"
	var b strings.Builder
	fits := 0 // so many bytes of b are followed by "…" if there is more
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		if b.Len() > longestLabel {
			return b.String()[:fits] + more
		}
		if b.Len() <= longestLabel-len(more) {
			fits = b.Len()
		}
		i += size
	}
	return b.String()
}

// WithMaxWait returns a context whose calls wait for d at most. It bounds each call that waits for a lock of any kind,
// or for a connection on behalf of one: Lock, Do, Acquire and their tries, [Lease.Token], Contenders, zklock.Revoke,
// the limit of a semaphore (Limit, Resize, ResetLimit), the leader of an election (Leader, Term), and a job of package
// schedule until its function is called. Each call has the whole of d, and a zklock.MultiLock has it for all of its
// locks. If d is 0 or less, a call that has to wait fails at once. The last bound that was set counts, not the shortest.
//
// The work under a lock is not bounded: neither the function of a Do, a term or a job, nor the calls in it. The same holds
// for the context of [Lease.Context]. So a handler can say "two seconds for the lock, ten for the work". What lasts for
// as long as others like is not bounded either: the campaign of an election, and an observer. [Lease.Release] goes by the
// end of its context alone.
//
// A call that has waited for d leaves the queue, and fails with an error that matches [ErrMaxWait], and neither
// [context.DeadlineExceeded] nor [context.Canceled] unless ctx has ended too. A [WaitError] in it says who was ahead.
func WithMaxWait(ctx context.Context, d time.Duration) context.Context {
	misuse.Context(ctx, "queue: WithMaxWait")
	return context.WithValue(ctx, maxWaitKey{}, max(0, d))
}

// WithoutMaxWait returns a context whose calls wait for as long as it lasts, whatever [WithMaxWait] has said.
func WithoutMaxWait(ctx context.Context) context.Context {
	misuse.Context(ctx, "queue: WithoutMaxWait")
	if _, bounded := MaxWait(ctx); !bounded {
		return ctx
	}
	return context.WithValue(ctx, maxWaitKey{}, time.Duration(-1))
}

// MaxWait returns for how long a call with ctx waits at most, and whether there is such a bound: see [WithMaxWait].
func MaxWait(ctx context.Context) (d time.Duration, bounded bool) {
	misuse.Context(ctx, "queue: MaxWait")
	d, ok := ctx.Value(maxWaitKey{}).(time.Duration)
	return d, ok && d >= 0
}

// BeginWait begins a call that [WithMaxWait] bounds. It is for makers of locks. inside ends with ctx, or when the call
// has waited for as long as it may, and does not bound calls within the call again. The caller calls end once, with the
// error of the call, and returns what that returns.
func BeginWait(ctx context.Context) (inside context.Context, end func(error) error) {
	misuse.Context(ctx, "queue: BeginWait")
	d, ok := ctx.Value(maxWaitKey{}).(time.Duration)
	if !ok || d < 0 {
		return ctx, func(err error) error { return err }
	}
	inside, cancel := context.WithDeadlineCause(WithoutMaxWait(ctx), time.Now().Add(d), ErrMaxWait)
	return inside, func(err error) error {
		defer cancel()
		if err == nil || !hasWaited(inside) || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		var wait *WaitError
		var op *OpError
		switch {
		case errors.As(err, &wait):
			wait.Err = ErrMaxWait
		case errors.As(err, &op):
			op.Err = &WaitError{Err: ErrMaxWait}
		default:
			err = &WaitError{Err: ErrMaxWait}
		}
		return err
	}
}

// hasWaited reports whether a context has ended because a call has waited for as long as it may.
func hasWaited(ctx context.Context) bool { return context.Cause(ctx) == ErrMaxWait } //nolint:errorlint // the cause itself

// Owner can enter its holds again: see [WithOwner]. Owners are compared by their addresses.
type Owner struct{ _ byte } // an address of its own takes a size

// WithOwner returns a context with a new owner, for re-entrancy: where Java has threads, Go has contexts. If the owner holds
// a lock, its next Lock with this context, or one derived from it, adds one to the hold count and returns at once, and
// each Unlock takes one off. Without an owner a second Lock waits, as that of [sync.Mutex] does.
//
// An owner is one task. Make the context where the task begins, and never in main: all goroutines with the context
// are the same owner, and would hold the lock beside each other.
//
// One owner can hold locks of any number of packages. It enters again what it holds by Lock, Do or their tries: a
// mutex, a key of a zklock.Keyed, a zklock.MultiLock as a whole, and both sides of a read-write lock. A semaphore is not
// re-entered: each call takes leases of its own. Acquire of any lock does not look at the owner.
func WithOwner(ctx context.Context) context.Context {
	misuse.Context(ctx, "queue: WithOwner")
	return context.WithValue(ctx, ownerKey{}, new(Owner))
}

// OwnerOf returns the owner of a context, or nil if it has none. It is for makers of locks.
func OwnerOf(ctx context.Context) *Owner {
	misuse.Context(ctx, "queue: OwnerOf")
	o, _ := ctx.Value(ownerKey{}).(*Owner)
	return o
}

// LeaseFrom returns the lease that ctx belongs to, for its token and [Lease.Guard]: that of a Do, or of
// [Lease.Context], or derived from one of these. If leases are nested, LeaseFrom returns the inner one.
//
// In a Do of several locks (Multi of package zklock) use MultiLeaseFrom of that package. The function of a Do must not
// release the lease: Do releases it.
func LeaseFrom(ctx context.Context) (*Lease, bool) {
	misuse.Context(ctx, "queue: LeaseFrom")
	l, ok := ctx.Value(leaseKey{}).(*Lease)
	return l, ok
}

// WithEnd returns a context that ends with parent, or with something that has an end, such as a hold: then err returns
// its cause, and after has called f. It is for makers of locks. [Lease.Context] is made of it.
//
// Err and Done of the returned context, and [context.Cause], call err, which may look at the clock. So they are right
// immediately after the process was paused, before any timer has run, and so is a context that is derived afterwards. One
// that was derived before the pause ends when a timer runs, or when anybody looks at the returned context.
//
// The caller must call the returned function when it no longer needs the context. Neither the context nor one that is
// derived from it costs a goroutine. A bound of parent's waits ([WithMaxWait]) does not hold in it.
func WithEnd(parent context.Context, err func() error, after func(f func()) (stop func())) (context.Context, context.CancelFunc) {
	misuse.Context(parent, "queue: WithEnd")
	inner, cancel := context.WithCancelCause(WithoutMaxWait(parent))
	stop := after(func() { cancel(err()) })
	c := &endContext{Context: inner, parent: parent, err: err, cancel: cancel}
	c.look()
	return c, func() {
		stop()
		cancel(context.Canceled)
	}
}

// endContext looks before it answers like its inner context. It has the same Done channel and passes Value on, by which
// package context recognizes its own contexts. So a context that is derived from an endContext becomes a child of the
// inner one.
type endContext struct {
	context.Context // the inner one, of package context
	parent          context.Context
	err             func() error
	cancel          context.CancelCauseFunc
}

// look ends the context if what it belongs to has ended. It may cancel any context, since package context holds no lock
// while it calls Done and Value.
func (c *endContext) look() {
	if c.Context.Err() != nil {
		return
	}
	_ = c.parent.Err() // if it is the context of another lease that has ended, this ends c
	if err := c.err(); err != nil {
		c.cancel(err)
	}
}

// Err is that of context.Context.
func (c *endContext) Err() error {
	c.look()
	return c.Context.Err()
}

// Done is that of context.Context.
func (c *endContext) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

// Value looks when it is asked for the key of package context, which is a *int. Up to Go 1.25 context.Cause asks for
// that before it asks for Err.
func (c *endContext) Value(key any) any {
	if _, ok := key.(*int); ok {
		c.look()
	}
	return c.Context.Value(key)
}

// String returns a name for messages. Printing the fields would race with a cancellation.
func (c *endContext) String() string { return fmt.Sprint(c.Context) + ".Lease" }
