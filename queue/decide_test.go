package queue

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// Decide says of any listing what counting says: whether the contender may go, how many are in its way, and which of them it watches.
func TestDecideCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		k := &Kind{Name: "semaphore", Prefixes: []string{PrefixLease}, Policy: func(me Node) Policy { return LeasePolicy(me, limit) }}
		var nodes []Node
		for i, weight := range rapid.SliceOfN(rapid.IntRange(1, 4), 1, 60).Draw(t, "weights") {
			name := NodeName(fmt.Sprint("id", i), PrefixLease, weight, rapid.Bool().Draw(t, "keep"))
			n, ok := ParseNode(fmt.Sprintf("%s%010d", name, i))
			if !ok {
				t.Fatal(name)
			}
			nodes = append(nodes, n)
		}
		me := nodes[rapid.IntRange(0, len(nodes)-1).Draw(t, "me")]
		p := k.Policy(me)
		names := []string{"locks", "_c_x-lock-"} // these are no contenders
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		v := Decide(k, p, me, rapid.Permutation(names).Draw(t, "listing"))

		ahead, total, tail := nodes[:me.Sequence], 0, 0
		for _, n := range ahead {
			total += n.Weight
		}
		if v.Go != (total <= p.Slack) || v.Count() != len(ahead) || v.Rest+weightOf(v.Watch) != total || v.Stranger != nil {
			t.Fatalf("of %d that weigh %d, with slack %d: %+v", len(ahead), total, p.Slack, v)
		}
		if v.Crowded != (int(me.Sequence) < len(nodes)-1) {
			t.Errorf("crowded: %v", v.Crowded)
		}
		for i, b := range v.Watch {
			if want := ahead[len(ahead)-len(v.Watch)+i]; b.Node.Name != want.Name {
				t.Fatalf("watched is %s and not %s", b.Node.Name, want.Name)
			}
			if i >= 1 {
				tail += b.Weight
			}
		}
		// While the whole tail stands, the contender may not go, so the end of one of the tail wakes it.
		if !v.Go && v.Beyond > 0 && tail <= p.Slack {
			t.Errorf("a tail that weighs %d is watched, with slack %d", tail, p.Slack)
		}
	})
}

func TestDecideStrangers(t *testing.T) {
	mutex := &Kind{Name: "mutex", Prefixes: []string{PrefixLock}, Policy: Mutex().Policy}
	node := func(name string) Node {
		n, ok := ParseNode(name)
		if !ok {
			t.Fatal(name)
		}
		return n
	}
	me := node("_c_a-lock-0000000005")
	for _, c := range []struct {
		what      string
		names     []string
		go_, kept bool
		stranger  string
	}{
		{"nobody", nil, true, true, ""},
		{"another kind", []string{"_c_b-lease-0000000009"}, false, false, "_c_b-lease-0000000009"},
		{"a second node of ours", []string{"_c_a-lock-0000000003"}, true, true, ""},
		{"one ahead", []string{"_c_b-lock-0000000003"}, false, false, ""},
		{"a kept place", []string{"_c_b-keep-lock-0000000003"}, false, true, ""},
		{"a kept place that somebody wants", []string{"_c_b-keep-lock-0000000003", "_c_c-keep-lock-0000000004"}, false, false, ""},
		{"names of no contenders", []string{"lock", "x-0000000001", "limit"}, true, true, ""},
	} {
		names := append([]string{me.Name}, c.names...)
		v := Decide(mutex, Policy{}, me, names)
		stranger := ""
		if v.Stranger != nil {
			stranger = v.Stranger.Name
		}
		if v.Go != c.go_ || v.OnlyKept != c.kept && !v.Go || stranger != c.stranger {
			t.Errorf("%s: %+v", c.what, v)
		}
	}
}
