package queue

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/session"
)

// Prefixes of contenders' names, before their sequence number. A kind of lock of one's own
// can have others.
const (
	PrefixLock  = "lock-"    // Curator's mutex, zk.Lock of go-zookeeper, and ours
	PrefixRead  = "__READ__" // Curator's read-write lock, and ours
	PrefixWrite = "__WRIT__"
	PrefixLease = "lease-" // Curator's semaphore, and ours

	PrefixUnfair = "unfair-" // our mutex without a queue

	PrefixKazooLock = "__lock__" // kazoo's mutex, and the writer of its read-write lock
	PrefixKazooRead = "__rlock__"
)

var knownPrefixes = []string{
	PrefixLock, PrefixRead, PrefixWrite, PrefixLease, PrefixUnfair, PrefixKazooLock, PrefixKazooRead,
}

// protected begins the names of those who must be able to find their own node again.
const protected = "_c_"

// Node is one contender, as its name tells it.
type Node struct {
	Name     string // the child's whole name
	ID       string // the uuid by which its maker finds it; "" if it has none
	Prefix   string // one of the constants, or of its kind's
	Weight   int    // how much it asks for: 1, or n for "x<n>-" before the prefix
	Sequence int32  // its place; orders nodes, and nothing else does
}

// nameFor returns the name to create a contender with; the server adds the sequence.
func nameFor(id, prefix string, weight int) string {
	if weight > 1 {
		prefix = "x" + strconv.Itoa(weight) + "-" + prefix
	}
	return protected + id + "-" + prefix
}

// ParseNode reads a child's name. It reports false for a child that is no contender of
// any kind known here, nor has one of the further prefixes.
func ParseNode(name string, further ...string) (Node, bool) {
	head, seq, ok := cutSequence(name)
	if !ok {
		return Node{}, false
	}
	n := Node{Name: name, Weight: 1, Sequence: seq}
	var rest string
	for _, prefixes := range [][]string{knownPrefixes, further} {
		for _, prefix := range prefixes {
			// Of two prefixes the longer tells more: that of "read-lock-" is not "lock-".
			before, ok := strings.CutSuffix(head, prefix)
			if ok && startsWord(before, prefix) && len(prefix) > len(n.Prefix) {
				n.Prefix, rest = prefix, before
			}
		}
	}
	if n.Prefix == "" {
		return Node{}, false
	}
	rest, n.Weight = cutWeight(rest)
	if id, ok := strings.CutPrefix(rest, protected); ok {
		n.ID = strings.TrimSuffix(id, "-")
	}
	return n, true
}

// checkPrefix says what is wrong with a prefix. Its end tells where it ends when a negative
// number follows; what is before it ends in "-" as a rule, so it cannot begin with that.
func checkPrefix(prefix string) error {
	if slices.Contains(knownPrefixes, prefix) {
		return nil
	}
	word := strings.TrimRight(prefix, "-_")
	if word == "" || word == prefix || prefix[0] == '-' || strings.Contains(prefix, "/") ||
		strings.HasPrefix(prefix, protected) {
		return fmt.Errorf("%w: prefix %q: want a word and then - or _, as in %q", session.ErrInvalid, prefix, PrefixLock)
	}
	for _, sequence := range []int32{0, 999_999_999, 1_000_000_000, math.MaxInt32, -1, -999_999_999, -1_000_000_000, math.MinInt32} {
		name := fmt.Sprintf("%s%010d", nameFor("id", prefix, 1), sequence)
		n, ok := ParseNode(name, prefix)
		if !ok || n.Prefix != prefix || n.Sequence != sequence || n.ID != "id" || n.Weight != 1 {
			return fmt.Errorf("%w: prefix %q: a node called %q would not be known for a contender: want one - or _ at the end",
				session.ErrInvalid, prefix, name)
		}
	}
	return plumbing.ValidatePath("/" + prefix)
}

// startsWord tells "lock-" from "block-". Prefixes with underscores follow kazoo's
// ids directly.
func startsWord(before, prefix string) bool {
	return before == "" || strings.HasSuffix(before, "-") || prefix[0] == '_'
}

// cutWeight takes "x<n>-" off the end of what is before the prefix.
func cutWeight(before string) (string, int) {
	i := strings.LastIndexByte(strings.TrimSuffix(before, "-"), '-') + 1
	word := before[i:]
	if len(word) < 3 || word[0] != 'x' || word[1] == '0' || word[len(word)-1] != '-' {
		return before, 1
	}
	n, err := strconv.ParseUint(word[1:len(word)-1], 10, 31)
	if err != nil {
		return before, 1
	}
	return before[:i], int(n)
}

// cutSequence takes the number off the end of a name. The server prints a signed
// 32-bit counter with "%010d".
func cutSequence(name string) (head string, seq int32, ok bool) {
	const width = 10
	if len(name) < width {
		return "", 0, false
	}
	i := len(name) - width
	digits := name[i:]
	// Ten digits may belong to a negative number that is longer than the field: if the
	// prefix, which ends in - or _, ends before the sign.
	if n, err := strconv.ParseUint(digits, 10, 32); err == nil && isDigits(digits) {
		signed := strings.HasSuffix(name[:i], "--") || strings.HasSuffix(name[:i], "_-")
		if n <= math.MaxInt32 && !(n >= 1e9 && signed) {
			return name[:i], int32(n), true
		}
		if i == 0 || name[i-1] != '-' || n > -math.MinInt32 {
			return "", 0, false
		}
		return name[:i-1], int32(-int64(n)), true
	}
	if digits[0] == '-' && isDigits(digits[1:]) {
		n, err := strconv.ParseUint(digits[1:], 10, 31)
		if err == nil && n > 0 {
			return name[:i], int32(-int64(n)), true
		}
	}
	return "", 0, false
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) > 0
}

// parseNodes reads and sorts the contenders of a listing, all kinds together.
func parseNodes(names []string, further ...string) []Node {
	nodes := make([]Node, 0, len(names))
	for _, name := range names {
		if n, ok := ParseNode(name, further...); ok {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, compareNodes)
	return nodes
}

// compareNodes orders by sequence. Two contenders can share one, after a downgrade;
// then any order will do as long as all see the same.
func compareNodes(a, b Node) int {
	if a.Sequence != b.Sequence {
		if a.Sequence < b.Sequence {
			return -1
		}
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}
