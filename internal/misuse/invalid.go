package misuse

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrInvalid is session.ErrInvalid, which says what it means.
var ErrInvalid = errors.New("invalid argument")

// Invalidf returns an error that matches ErrInvalid.
func Invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// ValidatePath returns an error that matches ErrInvalid if path is not the absolute path of a node by
// ZooKeeper's rules. It does no I/O.
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

// MaxPath is the longest path, in bytes. With it and the longest data, a request is far below what servers
// take.
const MaxPath = 16 << 10

// forbiddenRune has ZooKeeper's list (PathUtils.validatePath). It also refuses everything beyond
// the basic multilingual plane. Java sees such characters as surrogates, which the list forbids.
func forbiddenRune(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f ||
		r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}
