package share

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Escape is EscapePath of package zklock, which says what it promises.
func Escape(s string) string {
	var b strings.Builder
	head := 0 // how much of the element fits before a hash
	for i := 0; i < len(s); {
		_, size := utf8.DecodeRuneInString(s[i:])
		if unit := s[i : i+size]; plain(unit) && !ominous(s, i) {
			b.WriteString(unit)
		} else {
			for i := range len(unit) {
				fmt.Fprintf(&b, "%%%02X", unit[i])
			}
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
		// No other element has %~. The end is no digit, which might be the tenth of a sequence
		// number.
		hash := sha256.Sum256([]byte(s))
		return element[:head] + "%~" + hex.EncodeToString(hash[:]) + "~"
	}
	return element
}

// longest is the longest element.
var longest = strings.Repeat("k", maxElement)

const (
	maxElement = 255 // the limit of file systems, for tools that export the tree
	hashSize   = 2 + 2*sha256.Size + 1
)

// plain reports whether a character, or a byte that is not UTF-8, can stay as it is.
func plain(unit string) bool {
	return unit != "%" && unit != "/" && misuse.ValidatePath("/x"+unit) == nil
}

// ominous reports whether the character at i must be escaped because of what s means as a whole: the first character of a
// reserved word, and the last digit of a sequence number. Clients that look for their own nodes parse names that begin with _c_,
// and some versions of go-zookeeper panic at them.
func ominous(s string, i int) bool {
	switch i {
	case 0:
		return slices.Contains([]string{".", "..", "zookeeper", "locks", "leases"}, s) || strings.HasPrefix(s, "_c_")
	case len(s) - 1:
		return sequence.MatchString(s[max(0, len(s)-10):])
	}
	return false
}

// sequence matches the end of a sequential node's name: ten digits, or a minus sign and nine.
var sequence = regexp.MustCompile(`^[-0-9][0-9]{9}$`)
