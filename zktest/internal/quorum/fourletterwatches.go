package quorum

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func (sc *scope) watchCount() int {
	n := 0
	for _, m := range sc.all {
		n += m.watchCount()
	}
	return n
}

// wchp tells the sessions that watch each path. As in ZooKeeper, it does not show watches of children.
func wchp(sc *scope, b *strings.Builder) {
	all := make(map[string][]int64)
	for _, m := range sc.all {
		for path, peers := range m.data.byPath {
			for p := range peers {
				all[path] = append(all[path], p.session)
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		slices.Sort(all[path])
		fmt.Fprintf(b, "%s\n", path)
		for _, id := range all[path] {
			fmt.Fprintf(b, "\t0x%x\n", id)
		}
	}
	b.WriteString("\n")
}

func dump(sc *scope, b *strings.Builder) {
	if sc.self.lead != nil {
		dumpTracker(sc.self.lead.tracker, b)
	} else {
		sessions := sc.self.tree.Sessions
		fmt.Fprintf(b, "Global Sessions(%d):\n", len(sessions))
		for _, id := range slices.Sorted(maps.Keys(sessions)) {
			fmt.Fprintf(b, "0x%x\t%dms\n", id, sessions[id].Milliseconds())
		}
	}
	owned := sc.self.tree.Ephemerals
	fmt.Fprintf(b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(owned))
	for _, id := range slices.Sorted(maps.Keys(owned)) {
		fmt.Fprintf(b, "0x%x:\n", id)
		for _, path := range sc.self.tree.Owned(id) {
			fmt.Fprintf(b, "\t%s\n", path)
		}
	}
}

func dumpTracker(k *tracker, b *strings.Builder) {
	expiring := make(map[int64][]int64)
	for _, id := range k.ids() {
		at := k.sessions[id].expires.UnixMilli()
		expiring[at] = append(expiring[at], id)
	}
	fmt.Fprintf(b, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(expiring), len(k.sessions))
	for _, at := range slices.Sorted(maps.Keys(expiring)) {
		fmt.Fprintf(b, "%d expire at %d:\n", len(expiring[at]), at)
		for _, id := range expiring[at] {
			fmt.Fprintf(b, "\t0x%x\n", id)
		}
	}
}
