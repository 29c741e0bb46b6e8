package decide

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/turnstile-go/turnstile/kinds"
)

// A newcomer that has only read has the same contenders in its way as one that has entered behind those of the listing.
func TestWouldWait(t *testing.T) {
	reading := &kinds.Kind{Name: "read", Prefixes: []string{kinds.PrefixRead, kinds.PrefixWrite}, Policy: ReadWrite}
	leases := &kinds.Kind{Name: "leases", Prefixes: []string{kinds.PrefixLease}, Policy: Leases(5)}
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]*kinds.Kind{
			{Name: "mutex", Prefixes: []string{kinds.PrefixLock}, Policy: Exclusive},
			reading, leases,
		}).Draw(t, "kind")
		prefix := rapid.SampledFrom(kind.Prefixes)
		weight := func() int {
			if kind != leases {
				return 1
			}
			return rapid.IntRange(1, 5).Draw(t, "weight")
		}
		var names []string
		for range rapid.IntRange(0, 6).Draw(t, "nodes") {
			name := kinds.NodeName(uuid.NewString(), prefix.Draw(t, "prefix"), weight(), rapid.Bool().Draw(t, "keeps"))
			names = append(names, fmt.Sprintf("%s%010d", name, len(names)))
		}
		own, w := prefix.Draw(t, "own prefix"), weight()
		read := WouldWait(kind, Newcomer(own, w), rapid.Permutation(slices.Clone(names)).Draw(t, "listing"), kinds.Config{})

		me, _ := kinds.ParseNode(fmt.Sprintf("%s%010d", kinds.NodeName(uuid.NewString(), own, w, false), len(names)))
		rule, _ := RuleOf(kind, me, kinds.Config{})
		entered := (&Contender{Kind: kind, Node: me, Rule: rule, Slack: rule.Slack}).Read(append(names, me.Name)).Ahead
		entered.Sort()
		if entered.MayGo() != (read == nil) {
			t.Fatalf("may go: %v, would wait: %v", entered.MayGo(), read)
		}
		if read != nil && (!slices.Equal(read.Last, entered.Last) || read.Wanted(kind) != entered.Wanted(kind)) {
			t.Fatalf("in the way %v, by reading %v", entered.Last, read.Last)
		}
	})
}

// Where a listing cannot tell, the contender has to enter.
func TestWouldWaitCannotTell(t *testing.T) {
	lease := fmt.Sprintf("%s%010d", kinds.NodeName("id", kinds.PrefixLease, 1, false), 1)
	mutex := &kinds.Kind{Name: "mutex", Prefixes: []string{kinds.PrefixLock}, Policy: Exclusive}
	lock := fmt.Sprintf("%s%010d", kinds.NodeName("id", kinds.PrefixLock, 1, false), 1)
	leases := &kinds.Kind{Name: "leases", Prefixes: []string{kinds.PrefixLease}, Policy: Leases(2)}
	for what, got := range map[string]*Tail{
		"another kind":        WouldWait(mutex, Newcomer(kinds.PrefixLock, 1), []string{lock, lease}, kinds.Config{}),
		"more than the limit": WouldWait(leases, Newcomer(kinds.PrefixLease, 3), []string{lease}, kinds.Config{}),
		"nobody":              WouldWait(mutex, Newcomer(kinds.PrefixLock, 1), []string{"a child"}, kinds.Config{}),
	} {
		if got != nil {
			t.Errorf("%s: %v", what, got)
		}
	}
}
