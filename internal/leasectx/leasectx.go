// Package leasectx makes the contexts that end with a lease:
//
//	ctx, cancel := leasectx.New(parent, hold, lease.Err)
//	defer cancel()
package leasectx

import (
	"context"
	"fmt"
)

// New returns a context that ends with parent or with the lease. hold is a context that ends with
// the lease. leaseErr returns nil while the lease is held, and otherwise the cause of hold. It looks
// at the clock at the time of the call, and may end hold.
//
// Err, Done and [context.Cause] of the returned context call leaseErr. So they are right
// immediately after the process was paused, before any timer has run. The same holds for a context
// that is derived from it after the pause. A context that was derived before the pause cannot look
// at the clock. It ends when a timer runs, or when anybody calls one of these on the returned
// context.
//
// The caller must call the returned function when it no longer needs the context. Neither the
// context nor one that is derived from it costs a goroutine.
func New(parent, hold context.Context, leaseErr func() error) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(hold, func() { cancel(context.Cause(hold)) })
	c := &leaseContext{Context: inner, parent: parent, leaseErr: leaseErr, cancel: cancel}
	c.look()
	return c, func() {
		stop()
		cancel(context.Canceled)
	}
}

// leaseContext looks at the clock before it answers like its inner context. It has the same Done
// channel and passes Value on, by which package context recognizes its own contexts. So a context
// that is derived from a leaseContext becomes a child of the inner one.
type leaseContext struct {
	context.Context // the inner one, of package context: ends with the parent and with the lease
	parent          context.Context
	leaseErr        func() error
	cancel          context.CancelCauseFunc
}

// look ends the context if the lease has ended. It may cancel any context, since package context
// holds no lock while it calls Done and Value.
func (c *leaseContext) look() {
	if c.Context.Err() != nil {
		return
	}
	_ = c.parent.Err() // if it is the context of another lease that has ended, this ends c
	if err := c.leaseErr(); err != nil {
		c.cancel(err)
	}
}

func (c *leaseContext) Err() error {
	c.look()
	return c.Context.Err()
}

func (c *leaseContext) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

// Value looks at the clock when it is asked for the key of package context, which is a *int.
// Up to Go 1.25 context.Cause asks for that before it asks for Err.
func (c *leaseContext) Value(key any) any {
	if _, ok := key.(*int); ok {
		c.look()
	}
	return c.Context.Value(key)
}

// String returns a name for messages. Printing the fields would race with a cancellation.
func (c *leaseContext) String() string { return fmt.Sprint(c.Context) + ".Lease" }
