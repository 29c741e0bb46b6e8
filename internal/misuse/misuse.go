// Package misuse reports mistakes in a program's source at the call that makes them, and not
// deep inside or never.
//
// The rule for all packages of this module: a nil context, and an object that its constructor
// has not made (a zero value or a nil pointer), are a panic at the start of the exported method,
// before anything is sent or changed. The text names the method or the constructor. That is what
// packages context, net/http and time do. All other bad input is an error that matches
// session.ErrInvalid.
package misuse

import "context"

// Context panics if ctx is nil. method is what was called, as in "zklock: Mutex.Lock". It is
// small enough for the compiler to inline, so that a call costs a comparison.
func Context(ctx context.Context, method string) {
	if ctx == nil {
		nilContext(method)
	}
}

//go:noinline
func nilContext(method string) { panic(method + ": nil context") }

// NoCopy makes go vet report copies of the struct that has a field of this type. The field
// must have no name of its own, as in "_ misuse.NoCopy", or Lock and Unlock would be in reach.
type NoCopy struct{}

// Lock is what go vet's copylocks looks for. It does nothing.
func (*NoCopy) Lock() {}

// Unlock is what go vet's copylocks looks for. It does nothing.
func (*NoCopy) Unlock() {}
