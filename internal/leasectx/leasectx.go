// Package leasectx makes the contexts that end with a lease.
package leasectx

import (
	"context"
	"fmt"
)

// New returns a context that ends with parent, and when the lease does. hold is a context that
// ends with the lease. leaseErr returns nil while the lease is held, and otherwise the cause of
// hold; it goes by the clock at the time of the call, and may end hold.
//
// Err, Done and [context.Cause] of the returned context call leaseErr. So they are right at the
// first look after the process was paused, before any timer has run, and so is a context that is
// derived from it after the pause. One that was derived before can ask nobody: it ends as soon as
// anybody looks at the returned one, or a timer runs.
//
// The caller must call the returned function when done with the context. The context costs no
// goroutine while it lasts, nor does one that is derived from it.
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

// leaseContext looks at the clock before it answers as the context within does. It has that
// one's Done channel and hands on its Value, by which package context recognizes a context of
// its own: what is derived from a leaseContext becomes a child of the one within.
type leaseContext struct {
	context.Context // made by package context; ends with the parent and with the lease
	parent          context.Context
	leaseErr        func() error
	cancel          context.CancelCauseFunc
}

// look ends the context if the lease has ended. Package context calls Done and Value while it
// holds no lock, so this may cancel whatever there is.
func (c *leaseContext) look() {
	if c.Context.Err() != nil {
		return
	}
	_ = c.parent.Err() // it can be the context of another lease, which then ends this one
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
