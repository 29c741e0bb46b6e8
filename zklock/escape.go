package zklock

import "github.com/turnstile-go/turnstile/internal/share"

// EscapePath turns any string into one element of a path, for a lock that is named after user input
// or after data of another system:
//
//	zklock.New(m, "/locks/"+zklock.EscapePath(name))
//
// It serves all locks of this module. Different strings give different elements. Ordinary strings
// stay as they are. Bytes that cannot stay are written as in URLs, as % and two hexadecimal digits.
// The empty string becomes a lone %. If the element were longer than 255 bytes, its end is replaced by
// the SHA-256 of the string: two such elements are equal only if SHA-256 has been broken.
//
// Every server accepts the element. It is never empty, "." or "..", and has no slash. It cannot be
// taken for a contender's node of this module, Curator, go-zookeeper or kazoo, or for a directory of
// Curator or of ZooKeeper itself.
//
// EscapePath is not idempotent: it escapes an escaped string again. It does not normalize Unicode or
// case. Normalize names yourself if "É" and "é" should be the same lock.
func EscapePath(s string) string { return share.Escape(s) }
