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
	maxWaitKey struct{}
	leaseKey   struct{}
)

const longestLabel = 256 // in bytes

// WithLabel returns a context whose acquisitions have a label, such as "request 42", for hooks, and in the node for
// operators: see [Contender]. Nodes with data of their own, such as an election's, and those that several
// acquisitions share (zklock.WithLocalHandover) have none. A label is shortened to 256 bytes. What cannot be printed
// is escaped.
func WithLabel(ctx context.Context, text string) context.Context {
	misuse.Context(ctx, "queue: WithLabel")
	return context.WithValue(ctx, labelKey{}, tidy(text))
}

func labelOf(ctx context.Context) string {
	text, _ := ctx.Value(labelKey{}).(string)
	return text
}

func tidy(text string) string {
	const more = "…"
	var b strings.Builder
	fits := 0 // of b, with room for more
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

// WithMaxWait returns a context whose calls wait for d at most, whether for a lock of any kind or for a connection on
// behalf of one. It also bounds zklock.Revoke, the calls for the limit of a semaphore and for the leader of an
// election, and a job of package schedule until its function is called. If d is 0 or less, each such call fails at once.
//
// It does not bound the work under a lock, nor the calls in that: a handler can say "two seconds for the lock, ten
// for the work". Nor does it bound campaigns, observers and [Lease.Release].
//
// A call that has waited for d leaves the queue. Its error matches [ErrMaxWait], and neither
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

// MaxWait returns the bound of [WithMaxWait], if there is one.
func MaxWait(ctx context.Context) (d time.Duration, bounded bool) {
	misuse.Context(ctx, "queue: MaxWait")
	d, ok := ctx.Value(maxWaitKey{}).(time.Duration)
	return d, ok && d >= 0
}

// BeginWait begins a call that [WithMaxWait] bounds by the end of inside. The caller passes its error to end, once,
// and returns what that returns. For makers of locks.
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
		wait := &WaitError{} // a new one: a hook may have been given that of err
		if was := (*WaitError)(nil); errors.As(err, &was) {
			*wait = *was
		}
		wait.Err = ErrMaxWait
		if op := (*OpError)(nil); errors.As(err, &op) {
			return failed(op.Op, op.Path, wait)
		}
		return wait
	}
}

func hasWaited(ctx context.Context) bool { return context.Cause(ctx) == ErrMaxWait } //nolint:errorlint // the cause itself

// Owner can enter its holds again: see [WithOwner].
type Owner struct{ _ byte } // an address of its own takes a size

// WithOwner returns a context with a new owner, for re-entrancy. While the owner holds a lock, each Lock with this
// context, or one derived from it, adds one to the hold count, and each Unlock takes one off. Without an owner a
// second Lock waits, as that of [sync.Mutex] does.
//
// All goroutines with the context hold the lock beside each other, so never make it in main. An owner enters again
// what it holds by Lock, Do or their tries: any lock but a semaphore, and a zklock.MultiLock as a whole. Acquire
// ignores it.
func WithOwner(ctx context.Context) context.Context {
	misuse.Context(ctx, "queue: WithOwner")
	return context.WithValue(ctx, ownerKey{}, new(Owner))
}

// OwnerOf returns the owner of a context, or nil. For makers of locks.
func OwnerOf(ctx context.Context) *Owner {
	misuse.Context(ctx, "queue: OwnerOf")
	o, _ := ctx.Value(ownerKey{}).(*Owner)
	return o
}

// LeaseFrom returns the lease of the innermost Do or [Lease.Context] that ctx belongs to. The function of a Do must
// not release it. A Do of several locks has zklock.MultiLeaseFrom.
func LeaseFrom(ctx context.Context) (*Lease, bool) {
	misuse.Context(ctx, "queue: LeaseFrom")
	l, ok := ctx.Value(leaseKey{}).(*Lease)
	return l, ok
}

// WithEnd returns a context that ends with parent, or with a thing such as a hold: err returns why that has ended, or
// nil, and after calls f then. Err and Done of the context, and [context.Cause], call err, which may look at the
// clock: they are right immediately after the process was paused. [WithMaxWait] of parent does not hold in it. For
// makers of locks.
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

// endContext looks before it answers like its inner context. Package context recognizes its own contexts by Done and
// Value, so a derived context becomes a child of the inner one, without a goroutine.
type endContext struct {
	context.Context // the inner one
	parent          context.Context
	err             func() error
	cancel          context.CancelCauseFunc
}

// look ends the context if it is due. Package context holds no lock while it calls Done and Value.
func (c *endContext) look() {
	if c.Context.Err() != nil {
		return
	}
	_ = c.parent.Err() // this ends c if the parent is the ended context of another lease
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

// Value looks when it is asked for the key of package context, as context.Cause does first up to Go 1.25.
func (c *endContext) Value(key any) any {
	if _, ok := key.(*int); ok {
		c.look()
	}
	return c.Context.Value(key)
}

// String prints no fields: that would race with a cancellation.
func (c *endContext) String() string { return fmt.Sprint(c.Context) + ".Lease" }
