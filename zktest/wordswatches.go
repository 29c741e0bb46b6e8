package zktest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// members returns all of them, the one that does not lag first.
func (st *state) members() []*member { return append([]*member{st.main}, st.lagging()...) }

func (st *state) watchCount() int {
	n := 0
	for _, m := range st.members() {
		n += m.watchCount()
	}
	return n
}

// dataWatchers returns the sessions that watch each path, sorted. As with
// ZooKeeper, watches of children do not show in the words that begin with wch.
func (st *state) dataWatchers() (all map[string][]int64, total int) {
	all = make(map[string][]int64)
	for _, m := range st.members() {
		for path, peers := range m.data.byPath {
			for p := range peers {
				all[path] = append(all[path], p.session.id)
				total++
			}
		}
	}
	for _, ids := range all {
		slices.Sort(ids)
	}
	return all, total
}

func wchp(st *state, b *strings.Builder) {
	all, _ := st.dataWatchers()
	for _, path := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(b, "%s\n", path)
		for _, id := range all[path] {
			fmt.Fprintf(b, "\t0x%x\n", id)
		}
	}
	b.WriteString("\n")
}

func wchc(st *state, b *strings.Builder) {
	paths := make(map[int64][]string)
	all, _ := st.dataWatchers()
	for path, ids := range all {
		for _, id := range ids {
			paths[id] = append(paths[id], path)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(paths)) {
		fmt.Fprintf(b, "0x%x\n", id)
		slices.Sort(paths[id])
		for _, path := range paths[id] {
			fmt.Fprintf(b, "\t%s\n", path)
		}
	}
	b.WriteString("\n")
}

func wchs(st *state, b *strings.Builder) {
	all, total := st.dataWatchers()
	sessions := make(map[int64]struct{})
	for _, ids := range all {
		for _, id := range ids {
			sessions[id] = struct{}{}
		}
	}
	fmt.Fprintf(b, "%d connections watching %d paths\nTotal watches:%d\n", len(sessions), len(all), total)
}

func dump(st *state, b *strings.Builder) {
	expiring := make(map[int64][]int64)
	for _, id := range st.sessionIDs() {
		at := st.start.Add(st.sessions[id].expires).UnixMilli()
		expiring[at] = append(expiring[at], id)
	}
	fmt.Fprintf(b, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(expiring), len(st.sessions))
	for _, at := range slices.Sorted(maps.Keys(expiring)) {
		fmt.Fprintf(b, "%d expire at %d:\n", len(expiring[at]), at)
		for _, id := range expiring[at] {
			fmt.Fprintf(b, "\t0x%x\n", id)
		}
	}
	owned := st.main.tree.ephemerals
	fmt.Fprintf(b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(owned))
	for _, id := range slices.Sorted(maps.Keys(owned)) {
		fmt.Fprintf(b, "0x%x:\n", id)
		for _, path := range st.main.tree.owned(id) {
			fmt.Fprintf(b, "\t%s\n", path)
		}
	}
}
