// Package misuse reports mistakes in a program's source at the call that makes them.
//
// An exported method of this module panics, before it sends or changes anything, if its context is nil or its object
// was not made by the constructor, as packages context and net/http do. The text names the method or the constructor.
// All other bad input is an error that matches session.ErrInvalid, which is defined here, below all packages that
// return it.
package misuse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Context panics if ctx is nil. method is as in "zklock: Mutex.Lock". The compiler inlines it.
func Context(ctx context.Context, method string) {
	if ctx == nil {
		nilContext(method)
	}
}

//go:noinline
func nilContext(method string) { panic(method + ": nil context") }

// NoCopy makes go vet report copies of a struct that has a field "_ misuse.NoCopy". With a name, users could call its Lock.
type NoCopy struct{}

// Lock is for go vet's copylocks.
func (*NoCopy) Lock() {}

// Unlock is for go vet's copylocks.
func (*NoCopy) Unlock() {}

// ErrInvalid is session.ErrInvalid.
var ErrInvalid = errors.New("invalid argument")

// Invalidf returns an error that matches ErrInvalid.
func Invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// ValidatePath returns an error that matches ErrInvalid if path is not an absolute path by ZooKeeper's rules.
func ValidatePath(path string) error {
	switch {
	case path == "":
		return Invalidf("path is empty")
	case path[0] != '/':
		return Invalidf("path %q does not begin with a slash", path)
	case path == "/":
		return nil
	case strings.HasSuffix(path, "/"):
		return Invalidf("path %q ends with a slash", path)
	case len(path) > MaxPath:
		return Invalidf("path of %d bytes: the limit is %d", len(path), MaxPath)
	case !utf8.ValidString(path):
		return Invalidf("path %q is not UTF-8", path)
	}
	for _, element := range strings.Split(path[1:], "/") {
		switch element {
		case "":
			return Invalidf("path %q has an empty element", path)
		case ".", "..":
			return Invalidf("path %q has the relative element %q", path, element)
		}
	}
	for _, r := range path {
		if forbiddenRune(r) {
			return Invalidf("path %q has the forbidden character %U", path, r)
		}
	}
	return nil
}

// MaxPath is the longest path, in bytes: with it and the longest data, a request is far below what servers take.
const MaxPath = 16 << 10

// forbiddenRune has ZooKeeper's list (PathUtils.validatePath). Java sees characters beyond the basic multilingual
// plane as surrogates, which the list forbids.
func forbiddenRune(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f ||
		r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}
