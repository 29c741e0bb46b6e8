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

// WithLabel returns a context whose acquisitions, of locks of every kind, have a label, such as "request 42". It is in
// the contender's node, so that an operator sees what a lock is held for: see [Contender]. Hooks have it too. Nodes
// with data of your own, such as those of an election, and those that several acquisitions share
// (zklock.WithLocalHandover) have none. A label is shortened to 256 bytes. What cannot be printed is escaped, as "\x0a"
// for a line break.
func WithLabel(ctx context.Context, text string) context.Context {
	misuse.Context(ctx, "queue: WithLabel")
	return context.WithValue(ctx, labelKey{}, tidy(text))
}

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
// schedule until its function is called. A zklock.MultiLock has d for all of its locks. If d is 0 or less, a call that
// has to wait fails at once. The last bound that was set counts, not the shortest.
//
// The work under a lock is not bounded: neither the function of a Do, a term or a job, nor the calls in it. So a
// handler can say "two seconds for the lock, ten for the work". The campaign of an election, an observer and
// [Lease.Release] are not bounded either.
//
// A call that has waited for d leaves the queue, and fails with an error that matches [ErrMaxWait], and neither
// [context.DeadlineExceeded] nor [context.Canceled] unless ctx has ended too.
func WithMaxWait(ctx context.Context, d time.Duration) context.Context {
	misuse.Context(ctx, "queue: WithMaxWait")
	return context.WithValue(ctx, maxWaitKey{}, max(0, d))
}

// WithoutMaxWait returns a context without the bound of [WithMaxWait].
func WithoutMaxWait(ctx context.Context) context.Context {
	misuse.Context(ctx, "queue: WithoutMaxWait")
	if _, bounded := MaxWait(ctx); !bounded {
		return ctx
	}
	return context.WithValue(ctx, maxWaitKey{}, time.Duration(-1))
}

// MaxWait returns for how long a call with ctx waits at most, if [WithMaxWait] bounds it.
func MaxWait(ctx context.Context) (d time.Duration, bounded bool) {
	misuse.Context(ctx, "queue: MaxWait")
	d, ok := ctx.Value(maxWaitKey{}).(time.Duration)
	return d, ok && d >= 0
}

// BeginWait begins a call that [WithMaxWait] bounds: by the end of inside, which bounds no calls within the call. The
// caller calls end once, with the error of the call, and returns what that returns. For makers of locks.
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

// hasWaited reports whether the bound of [BeginWait] has ended a context.
func hasWaited(ctx context.Context) bool { return context.Cause(ctx) == ErrMaxWait } //nolint:errorlint // the cause itself

// Owner can enter its holds again: see [WithOwner].
type Owner struct{ _ byte } // an address of its own takes a size

// WithOwner returns a context with a new owner, for re-entrancy: where Java has threads, Go has contexts. If the owner
// holds a lock, a Lock with this context, or one derived from it, adds one to the hold count and returns at once, and
// each Unlock takes one off. Without an owner a second Lock waits, as that of [sync.Mutex] does.
//
// An owner is one task: all goroutines with the context hold the lock beside each other, so never make it in main. An
// owner enters again what it holds by Lock, Do or their tries: a mutex, a key of a zklock.Keyed, a zklock.MultiLock as
// a whole, and both sides of a read-write lock. A semaphore and Acquire of any lock do not look at the owner.
func WithOwner(ctx context.Context) context.Context {
	misuse.Context(ctx, "queue: WithOwner")
	return context.WithValue(ctx, ownerKey{}, new(Owner))
}

// OwnerOf returns the owner of a context, or nil if it has none. For makers of locks.
func OwnerOf(ctx context.Context) *Owner {
	misuse.Context(ctx, "queue: OwnerOf")
	o, _ := ctx.Value(ownerKey{}).(*Owner)
	return o
}

// LeaseFrom returns the lease of the innermost Do or [Lease.Context] that ctx belongs to, for its token and
// [Lease.Guard]. The function of a Do must not release it. In a Do of several locks use zklock.MultiLeaseFrom.
func LeaseFrom(ctx context.Context) (*Lease, bool) {
	misuse.Context(ctx, "queue: LeaseFrom")
	l, ok := ctx.Value(leaseKey{}).(*Lease)
	return l, ok
}

// WithEnd returns a context that ends with parent, or with something that has an end, such as a hold: then err returns
// its cause, and after has called f. [WithMaxWait] of parent does not hold in it. The caller calls the returned
// function when it no longer needs the context. For makers of locks.
//
// Err and Done of the context, and [context.Cause], call err, which may look at the clock. So they are right
// immediately after the process was paused, before any timer has run, and so is a context that is derived afterwards.
// One that was derived before the pause ends when a timer runs, or when anybody looks at the returned context.
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

// endContext looks before it answers like its inner context. By Done and Value package context recognizes its own
// contexts, so one that is derived from an endContext becomes a child of the inner one, without a goroutine.
type endContext struct {
	context.Context // the inner one, of package context
	parent          context.Context
	err             func() error
	cancel          context.CancelCauseFunc
}

// look ends the context if what it belongs to has ended. Package context holds no lock while it calls Done and Value.
func (c *endContext) look() {
	if c.Context.Err() != nil {
		return
	}
	_ = c.parent.Err() // if it is the context of another lease that has ended, this ends c
	if err := c.err(); err != nil {
		c.cancel(err)
	}
}

func (c *endContext) Err() error {
	c.look()
	return c.Context.Err()
}

func (c *endContext) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

// Value looks when it is asked for the key of package context, a *int. Up to Go 1.25 context.Cause asks for that first.
func (c *endContext) Value(key any) any {
	if _, ok := key.(*int); ok {
		c.look()
	}
	return c.Context.Value(key)
}

// String returns a name for messages. Printing the fields would race with a cancellation.
func (c *endContext) String() string { return fmt.Sprint(c.Context) + ".Lease" }
