package place

import (
	"fmt"
	"testing"

	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/kinds"
)

// readKind and writeKind are those of a read-write lock.
var (
	readKind  = &kinds.Kind{Name: "rw", Prefixes: []string{kinds.PrefixRead, kinds.PrefixWrite}, Policy: decide.ReadWrite}
	writeKind = &kinds.Kind{Name: "rw", Prefixes: []string{kinds.PrefixWrite, kinds.PrefixRead}, Policy: decide.ReadWrite}
)

// A node keeps some contenders behind it waiting and others not. Some requests can hold together.
func TestKeepsWaiting(t *testing.T) {
	const id = "_c_id-"
	for _, c := range []struct {
		what  string
		kind  *kinds.Kind
		me    string
		nodes []string
		want  bool
	}{
		{"alone", mutexKind, "lock-0000000005", nil, false},
		{"one behind", mutexKind, "lock-0000000005", []string{"lock-0000000006"}, true},
		{"one of kazoo's behind", mutexKind, "lock-0000000005", []string{"__lock__0000000006"}, true},
		{"one ahead", mutexKind, "lock-0000000005", []string{"lock-0000000004"}, false},
		{"a reader behind a reader", readKind, "__READ__0000000005", []string{"__READ__0000000006"}, false},
		{"a writer behind a reader", readKind, "__READ__0000000005", []string{"__READ__0000000006", "__WRIT__0000000007"}, true},
		{"a reader behind a writer", writeKind, "__WRIT__0000000005", []string{"__READ__0000000006"}, true},
	} {
		all := []string{id + c.me}
		for _, name := range c.nodes {
			all = append(all, id+name)
		}
		me, _ := kinds.ParseNode(id + c.me)
		if got := decide.KeepsWaiting(c.kind, me, decide.ParseNodes(all)); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	for kind, want := range map[*kinds.Kind]bool{mutexKind: false, readKind: true, writeKind: false} {
		r := Request{Kind: kind}
		expect.NoError(t, r.complete())
		if r.IsShared() != want {
			t.Errorf("%s, %v: shared %v", kind.Name, kind.Prefixes, !want)
		}
	}
}

// Readers set their watch again as long as their node is there, no writer is, and contenders are few.
func TestAloneIn(t *testing.T) {
	r := Request{Kind: readKind}
	expect.NoError(t, r.complete())
	me, _ := kinds.ParseNode("_c_me-keep-__READ__0000000005")
	turn := &Turn{place: &place{r: &r, node: me}}
	readers := func(n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprintf("_c_other-__READ__%010d", 10+i))
		}
		return names
	}
	for _, c := range []struct {
		what  string
		names []string
		want  bool
	}{
		{"alone", []string{me.Name}, true},
		{"with few", append(readers(maxCrowd-1), me.Name), true},
		{"with many", append(readers(maxCrowd), me.Name), false},
		{"with a writer", []string{me.Name, "_c_other-__WRIT__0000000006"}, false},
		{"with a child that is no contender", []string{me.Name, "notes"}, true},
		{"with another kind of lock", []string{me.Name, "_c_other-lease-0000000006"}, false},
		{"gone", readers(1), false},
	} {
		if got := turn.aloneIn(c.names); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}
