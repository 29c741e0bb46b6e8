package queue

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The name of a contender's node ends in a prefix and the sequence number that the server adds:
//
//	_c_<uuid>-lock-0000000007        zklock; Curator's mutex; zk.Lock of go-zookeeper (uuid without -)
//	_c_<uuid>-latch-0000000007       Curator's LeaderLatch
//	_c_<uuid>-elect-lock-0000000007  election, and -elect-latch- with election.WithLeaderLatch
//	_c_<uuid>-__READ__0000000007     rwlock and Curator, a reader; a writer has __WRIT__
//	_c_<uuid>-lease-0000000007       semaphore and Curator, one lease
//	_c_<uuid>-x3-lease-0000000007    semaphore, three leases at once
//	_c_<uuid>-keep-lock-0000000007   zklock and rwlock, if the place may be kept unused
//	_c_<uuid>-unfair-0000000007      a mutex before 0.1.0: a conflict for every kind
//	<uuid>__lock__0000000007         kazoo's mutex or writer; a reader has __rlock__
//	_c_<uuid>-lock--2147483648       any client, past the end of the counter
//
// By "_c_<uuid>-" a client finds its own node when the reply to a create was lost. Curator's ProtectedUtils recognize
// only a uuid of 36 characters.

// Prefixes of contenders, whatever the kind of lock.
const (
	PrefixLock  = "lock-"    // zklock, Curator, zk.Lock of go-zookeeper
	PrefixLatch = "latch-"   // Curator's LeaderLatch
	PrefixRead  = "__READ__" // rwlock, Curator
	PrefixWrite = "__WRIT__" // rwlock, Curator
	PrefixLease = "lease-"   // semaphore, Curator

	PrefixKazooLock = "__lock__"  // kazoo's mutex or writer
	PrefixKazooRead = "__rlock__" // kazoo's reader
)

const prefixUnfair = "unfair-"

var knownPrefixes = []string{
	PrefixLock, PrefixLatch, PrefixRead, PrefixWrite, PrefixLease, prefixUnfair, PrefixKazooLock, PrefixKazooRead,
}

const (
	protected = "_c_"
	keepWord  = "keep-"
)

// Node is what a contender's name says.
type Node struct {
	Name     string
	ID       string // after "_c_"
	Prefix   string
	Weight   int // n of "x<n>-"; default: 1
	Sequence int32
	MayKeep  bool // "keep-": it may be kept unused
}

// RevokeMessage is the node data, of Curator too, that asks a holder to give up its lease.
const RevokeMessage = "__REVOKE__"

// NodeName returns the name of a contender's node, without the sequence number. weight is at least 1.
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

// ParseNode parses the name of a child. It returns false if the child is no contender: its name has none of the
// constant prefixes, and none of the further ones.
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
			// It is not "block-". A prefix with an underscore can follow an id directly, as in kazoo's names.
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

func cutSequence(name string) (head string, seq int32, ok bool) {
	i := len(name) - 10
	if i < 0 {
		return "", 0, false
	}
	digits := name[i:]
	if n, err := strconv.ParseUint(digits, 10, 32); err == nil {
		// Before ten digits, a - is a sign only if the prefix, which ends in - or _, ends before it.
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

// compareNodes orders two nodes that share a sequence after a downgrade in any way that all agree on.
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
