// Package misuse reports mistakes in a program's source at the call that makes them.
//
// All packages of this module follow one rule. An exported method panics at its start, before it sends
// or changes anything, if its context is nil, or if its object was not made by the constructor (a zero
// value or a nil pointer). The text names the method or the constructor. Packages context, net/http and
// time do the same. All other bad input is an error that matches session.ErrInvalid. That is
// defined here, below all packages that return it.
package misuse

import "context"

// Context panics if ctx is nil. method is the method that was called, as in "zklock: Mutex.Lock". The
// compiler can inline Context, so that a call costs one comparison.
func Context(ctx context.Context, method string) {
	if ctx == nil {
		nilContext(method)
	}
}

//go:noinline
func nilContext(method string) { panic(method + ": nil context") }

// NoCopy makes go vet report copies of a struct that has a field of this type. The field must not have a
// name or be embedded, as in "_ misuse.NoCopy". Otherwise users could call its Lock and Unlock.
type NoCopy struct{}

// Lock does nothing. go vet's copylocks looks for it.
func (*NoCopy) Lock() {}

// Unlock does nothing. go vet's copylocks looks for it.
func (*NoCopy) Unlock() {}
