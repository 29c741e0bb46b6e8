package quorum

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// Check returns what is wrong with an ensemble whose faults have ended, and whose servers have
// had time to recover and to answer all requests: servers that do not serve, that differ from
// each other, or that do not have the nodes whose creation was acknowledged.
func (st *State) Check(acknowledged []string, clients int) (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	want := st.spokesman().tree
	for _, path := range acknowledged {
		if want.Nodes[path] == nil {
			add("%s was acknowledged and is gone", path)
		}
	}
	for _, m := range st.members {
		if !m.serving() || len(m.log) > 0 || len(m.pending) > 0 {
			add("server %d: serving %v, %d transactions and %d sessions pending", m.index, m.serving(), len(m.log), len(m.pending))
		}
		got := m.tree
		if got.Zxid != want.Zxid || !maps.Equal(got.Sessions, want.Sessions) {
			add("server %d: %#x and sessions %v, want %#x and %v", m.index, got.Zxid, got.Sessions, want.Zxid, want.Sessions)
		}
		if !slices.Equal(slices.Sorted(maps.Keys(got.Nodes)), slices.Sorted(maps.Keys(want.Nodes))) {
			add("server %d has other nodes", m.index)
		}
		for path, n := range want.Nodes {
			if got := got.Nodes[path]; got != nil && (got.Stat != n.Stat || !bytes.Equal(got.Data, n.Data) || (got.Data == nil) != (n.Data == nil)) {
				add("server %d: %s is %+v, want %+v", m.index, path, got, n)
			}
		}
	}
	if n := len(st.connections(st.members...)); n > clients {
		add("%d connections are left", n)
	}
	return wrong
}
