package place

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/turnstile-go/turnstile/kinds"
)

// A number at which the counter is used up is refused. The attempt knows its node all the same, since
// it has to delete it.
func TestFound(t *testing.T) {
	all := []string{
		kinds.PrefixLock, kinds.PrefixLatch, kinds.PrefixRead, kinds.PrefixWrite, kinds.PrefixLease, kinds.PrefixKazooLock, kinds.PrefixKazooRead,
	}
	kind := &kinds.Kind{Name: "test", Prefixes: all, Policy: func(kinds.Node) kinds.Policy { return kinds.Policy{} }}
	for _, prefix := range all {
		for seq, good := range map[int32]bool{
			0:                 true,
			1 << 30:           true,
			math.MaxInt32 - 1: true,
			math.MaxInt32:     false,
			math.MinInt32:     false,
			-1e9:              false,
			-5:                false,
			-1:                false,
		} {
			a := newAttempt(nil, nil, &Request{Kind: kind, Prefix: prefix, Weight: 2}, &Entry{})
			name := kinds.NodeName(a.id, prefix, 2, false) + fmt.Sprintf("%010d", seq)
			err := a.found(name)
			if good != (err == nil) || !good && !errors.Is(err, ErrSequence) {
				t.Errorf("%s: %v", name, err)
			}
			if a.node.Name != name || a.node.Sequence != seq {
				t.Errorf("%s is not known: it would not be removed: %+v", name, a.node)
			}
		}
	}
}
