package zklock

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/turnstile-go/turnstile/internal/plumbing"
)

// EscapePath turns any string into one element of a path, for a lock that is named after
// what a user has typed or another system has sent:
//
//	zklock.New(m, "/locks/"+zklock.EscapePath(name))
//
// It serves the other locks of this module as well. What it returns is never empty, has no
// slash, is no "." or "..", and is accepted by every server; nor can it be taken for a
// contender's node, of this module, Curator, go-zookeeper or kazoo, or for a directory of
// Curator's or ZooKeeper's own. Different strings give different elements. Ordinary ones stay
// as they are; bytes that cannot are written as in URLs, as % and two hexadecimal digits, and
// the empty string as a lone %. Where that is longer than 255 bytes, the end is replaced by the
// SHA-256 of the string: of those, two are the same only if that has been broken.
//
// It is not idempotent: what is escaped already is escaped again. To Unicode's several ways
// of writing one text, and to upper and lower case, it is blind: what is to be one lock must
// be made one string before.
func EscapePath(s string) string {
	var b strings.Builder
	head := 0 // of what is written, what fits before a hash
	for i := 0; i < len(s); {
		_, size := utf8.DecodeRuneInString(s[i:])
		if unit := s[i : i+size]; plain(unit) && !ominous(s, i) {
			b.WriteString(unit)
		} else {
			escape(&b, unit)
		}
		i += size
		if b.Len() <= maxElement-hashSize {
			head = b.Len()
		}
	}
	element := b.String()
	switch {
	case element == "":
		return "%"
	case len(element) > maxElement:
		// Otherwise % is followed by two digits or nothing. The end is no digit, which
		// might be the tenth of a sequence number.
		hash := sha256.Sum256([]byte(s))
		return element[:head] + "%~" + hex.EncodeToString(hash[:]) + "~"
	}
	return element
}

const (
	maxElement = 255 // what file systems allow, should somebody export the tree
	hashSize   = 2 + 2*sha256.Size + 1
)

// plain reports whether a character, or a byte that is none, can stay as it is.
func plain(unit string) bool {
	return unit != "%" && unit != "/" && plumbing.ValidatePath("/x"+unit) == nil
}

// ominous reports whether the character at i is to be escaped for what the whole would mean:
// the first of a word that is reserved, and the last of what ends as a sequence number does.
func ominous(s string, i int) bool {
	return i == 0 && reserved(s) || i == len(s)-1 && endsInSequence(s)
}

// reserved reports whether a name means something. What begins with _c_ is looked at by those
// who look for their own nodes, and some versions of go-zookeeper panic at it.
func reserved(s string) bool {
	return slices.Contains([]string{".", "..", "zookeeper", "locks", "leases"}, s) || strings.HasPrefix(s, "_c_")
}

// endsInSequence reports whether a name ends as the server ends those of sequential nodes:
// with ten digits, the first of which can be a minus sign.
func endsInSequence(s string) bool {
	if len(s) < 10 {
		return false
	}
	last := s[len(s)-10:]
	return strings.Trim(last[1:], "0123456789") == "" && strings.Trim(last[:1], "-0123456789") == ""
}

// escape writes each byte as % and two digits.
func escape(b *strings.Builder, unit string) {
	const digits = "0123456789ABCDEF"
	for i := range len(unit) {
		b.WriteByte('%')
		b.WriteByte(digits[unit[i]>>4])
		b.WriteByte(digits[unit[i]&15])
	}
}
