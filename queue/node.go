package queue

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The name of a contender's node ends in a prefix and the sequence number that the server has added. Names of this
// module and of other clients:
//
//	_c_<uuid>-lock-0000000007        zklock; Curator's mutex; zk.Lock of go-zookeeper (uuid without -)
//	_c_<uuid>-latch-0000000007       Curator's LeaderLatch
//	_c_<uuid>-elect-lock-0000000007  election, and -elect-latch- with election.WithLeaderLatch
//	_c_<uuid>-rank3-elect-lock-0000000007   election before 0.1.0; the rank is ignored
//	_c_<uuid>-__READ__0000000007     rwlock and Curator, a reader; a writer has __WRIT__
//	_c_<uuid>-lease-0000000007       semaphore and Curator, one lease
//	_c_<uuid>-x3-lease-0000000007    semaphore, three leases at once
//	_c_<uuid>-keep-lock-0000000007   zklock and rwlock, if the place may be kept: see WithLazyRelease
//	_c_<uuid>-unfair-0000000007      a mutex without a queue, of states before 0.1.0: a conflict for every kind
//	<uuid>__lock__0000000007         kazoo's mutex, and the writer of its read-write lock; a reader has __rlock__
//	_c_<uuid>-lock--2147483648       any client, past the end of the counter
//
// "_c_<uuid>-" is how a client finds its own node again when the reply to a create was lost. The uuid has 36 characters
// although 22 would do: Curator's public functions (ProtectedUtils) do not recognize a shorter one.

// Prefixes that mark a child as a contender, whatever the kind of lock. A kind can have others.
const (
	PrefixLock  = "lock-"    // a mutex: zklock, Curator, zk.Lock of go-zookeeper
	PrefixLatch = "latch-"   // an election: Curator's LeaderLatch
	PrefixRead  = "__READ__" // a reader: rwlock, Curator
	PrefixWrite = "__WRIT__" // a writer: rwlock, Curator
	PrefixLease = "lease-"   // leases of a semaphore: semaphore, Curator

	PrefixKazooLock = "__lock__"  // a mutex or a writer: kazoo
	PrefixKazooRead = "__rlock__" // a reader: kazoo
)

const prefixUnfair = "unfair-" // no kind may have it

var knownPrefixes = []string{
	PrefixLock, PrefixLatch, PrefixRead, PrefixWrite, PrefixLease, prefixUnfair, PrefixKazooLock, PrefixKazooRead,
}

const (
	protected = "_c_"   // begins names that have an id
	keepWord  = "keep-" // marks the nodes whose place may be kept
)

// Node is what a contender's name says about it.
type Node struct {
	Name     string // the whole name of the child
	ID       string // the uuid after "_c_"; "" if the name has none
	Prefix   string // one of the constants, or of the kind's prefixes
	Weight   int    // how much it asks for: n if "x<n>-" is before the prefix, otherwise 1
	Sequence int32  // the only thing that orders nodes
	MayKeep  bool   // the place may be kept while nobody holds the lock: "keep-" is before the prefix and "x<n>-"
}

// RevokeMessage is the node data that asks a holder to give up its lease. Curator uses the same.
const RevokeMessage = "__REVOKE__"

// NodeName returns the name that this module gives to a contender's node, without the sequence number, which the server
// adds. [ParseNode] parses it. id is a uuid, and weight is at least 1.
func NodeName(id, prefix string, weight int, mayKeep bool) string {
	return protected + id + "-" + nodeName(prefix, weight, mayKeep)
}

func nodeName(prefix string, weight int, mayKeep bool) string {
	if weight > 1 {
		prefix = "x" + strconv.Itoa(weight) + "-" + prefix
	}
	if mayKeep {
		prefix = keepWord + prefix
	}
	return prefix
}

// ParseNode parses the name of a child. It returns false if the name has none of the prefixes that are constants here,
// and none of the further ones: then the child is not a contender.
func ParseNode(name string, further ...string) (Node, bool) {
	head, seq, ok := cutSequence(name)
	if !ok {
		return Node{}, false
	}
	n := Node{Name: name, Weight: 1, Sequence: seq}
	var rest string
	for _, prefixes := range [][]string{knownPrefixes, further} {
		for _, prefix := range prefixes {
			before, ok := strings.CutSuffix(head, prefix)
			if !ok || len(prefix) <= len(n.Prefix) { // the longest counts: "read-lock-" also ends in "lock-"
				continue
			}
			// It is not "block-". A prefix that begins with an underscore can follow an id directly, as in kazoo's
			// names.
			if before == "" || strings.HasSuffix(before, "-") || prefix[0] == '_' {
				n.Prefix, rest = prefix, before
			}
		}
	}
	if n.Prefix == "" {
		return Node{}, false
	}
	rest, n.Weight = cutWeight(rest)
	if id, ok := strings.CutPrefix(rest, protected); ok {
		if n.ID, n.MayKeep = strings.CutSuffix(id, "-"+keepWord); !n.MayKeep {
			n.ID = strings.TrimSuffix(id, "-")
		}
	}
	return n, true
}

// cutWeight cuts "x<n>-" off the end of the part before the prefix.
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

// cutSequence cuts the sequence number off the end of a name. The server formats a signed 32-bit counter with "%010d".
func cutSequence(name string) (head string, seq int32, ok bool) {
	i := len(name) - 10
	if i < 0 {
		return "", 0, false
	}
	digits := name[i:]
	if n, err := strconv.ParseUint(digits, 10, 32); err == nil {
		// A number of ten digits can be negative, and then the name is one longer. The - before it is a sign only if
		// the prefix, which ends in - or _, ends before the sign.
		signed := strings.HasSuffix(name[:i], "--") || strings.HasSuffix(name[:i], "_-")
		if n <= math.MaxInt32 && !(n >= 1e9 && signed) {
			return name[:i], int32(n), true
		}
		if i == 0 || name[i-1] != '-' || n > -math.MinInt32 {
			return "", 0, false
		}
		return name[:i-1], int32(-int64(n)), true
	}
	if n, err := strconv.ParseUint(digits[1:], 10, 31); err == nil && digits[0] == '-' && n > 0 {
		return name[:i], int32(-int64(n)), true
	}
	return "", 0, false
}

// compareNodes orders by sequence. Two nodes share one after a downgrade: then any order will do that all agree on.
func compareNodes(a, b Node) int {
	return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.Name, b.Name))
}

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
