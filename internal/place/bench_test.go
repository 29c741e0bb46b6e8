package place

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"

	"github.com/turnstile-go/turnstile/kinds"
)

// BenchmarkDecide decides by one listing, for the last contender in it.
func BenchmarkDecide(b *testing.B) {
	for _, contenders := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprintf("contenders=%d", contenders), func(b *testing.B) {
			names := make([]string, contenders)
			for i := range names {
				names[i] = fmt.Sprintf("%s%010d", kinds.NodeName(uuid.NewString(), kinds.PrefixLock, 1, false), i)
			}
			last, _ := kinds.ParseNode(names[contenders-1])
			rand.Shuffle(contenders, func(i, j int) { names[i], names[j] = names[j], names[i] })
			a := &attempt{place: &place{r: &Request{Kind: mutexKind}, node: last}}
			b.ReportAllocs()
			for b.Loop() {
				ahead, err := a.decide(context.Background(), names)
				if err != nil || ahead.Count() != contenders-1 || ahead.MayGo() || len(ahead.Last) != 2 {
					b.Fatal(ahead, err)
				}
			}
		})
	}
}

// BenchmarkParseNode parses the name of one contender.
func BenchmarkParseNode(b *testing.B) {
	for what, name := range map[string]string{
		"plain":  kinds.NodeName(uuid.NewString(), kinds.PrefixLock, 1, false) + "0000001234",
		"weight": kinds.NodeName(uuid.NewString(), kinds.PrefixLease, 3, false) + "0000001234",
		"other":  "something-else",
	} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := kinds.ParseNode(name); ok != (what != "other") {
					b.Fatal(name)
				}
			}
		})
	}
}
