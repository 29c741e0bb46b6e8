package decide

import (
	"slices"
	"strings"

	"github.com/turnstile-go/turnstile/kinds"
)

// parseNodes parses and sorts the contenders in a listing, of all kinds.
func ParseNodes(names []string, further ...string) []kinds.Node {
	nodes := make([]kinds.Node, 0, len(names))
	for _, name := range names {
		if n, ok := kinds.ParseNode(name, further...); ok {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, Compare)
	return nodes
}

// compareNodes orders by sequence number. After a downgrade two nodes share one. Then any order
// will do, as long as it is the same for all contenders.
func Compare(a, b kinds.Node) int {
	if a.Sequence != b.Sequence {
		if a.Sequence < b.Sequence {
			return -1
		}
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}
