package quorum

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// words are the four-letter words that the servers answer.
var words = map[string]func(*scope, *strings.Builder){
	"ruok": func(_ *scope, b *strings.Builder) { b.WriteString("imok") },
	"envi": envi,
	"srvr": srvr,
	"mntr": mntr,
	"dump": dump,
	"wchp": wchp,
}

// A scope is what a four-letter word is about: one server, or the ensemble as a whole.
type scope struct {
	*State
	self *Member   // the server that answers
	all  []*Member // the servers whose clients count
}

// Imitated returns the release that the servers imitate.
func (st *State) Imitated() znode.Release { return st.conf.Release }

// KnownWord reports whether the servers know a four-letter word.
func KnownWord(word string) bool { return words[word] != nil }

// AnswerWord returns the answer of the ensemble as a whole to a known word.
func (st *State) AnswerWord(word string) string {
	var b strings.Builder
	words[word](&scope{st, st.spokesman(), st.members}, &b)
	return b.String()
}

// AnswerWordOf calls answer with one server's answer to a known word. If the server stands still, it
// does so when the server continues.
func (st *State) AnswerWordOf(server int, word string, answer func(string)) {
	m := st.members[server]
	m.whenAwake(func() {
		var b strings.Builder
		switch {
		case m.Stopped:
		case !m.serving() && word != "ruok" && word != "envi":
			b.WriteString("This ZooKeeper instance is not currently serving requests\n")
		default:
			words[word](&scope{st, m, []*Member{m}}, &b)
		}
		answer(b.String())
	})
}

// inProcess returns how many requests the servers have in process.
func (sc *scope) inProcess() int {
	n := 0
	for _, m := range sc.all {
		for _, queue := range m.pending {
			n += len(queue)
		}
	}
	return n
}

// clients returns the clients' connections, the oldest first.
func (sc *scope) clients() []*Peer { return sc.connections(sc.all...) }

// envi has the version, which kazoo asks for.
func envi(sc *scope, b *strings.Builder) {
	fmt.Fprintf(b, "Environment:\nzookeeper.version=%s-zktest\nhost.name=localhost\n", sc.conf.Release.Number)
}

func srvr(sc *scope, b *strings.Builder) {
	fmt.Fprintf(b, "Zookeeper version: %s-zktest\n", sc.conf.Release.Number)
	fmt.Fprintf(b, "Connections: %d\nOutstanding: %d\n", len(sc.clients()), sc.inProcess())
	fmt.Fprintf(b, "Zxid: 0x%x\nMode: %s\nNode count: %d\n", sc.self.tree.Zxid, sc.self.role(), sc.self.tree.Count())
}

func mntr(sc *scope, b *strings.Builder) {
	t := sc.self.tree
	size := 0
	for path, n := range t.Nodes {
		size += len(path) + len(n.Data)
	}
	for _, metric := range []struct {
		name  string
		value any
	}{
		{"version", sc.conf.Release.Number + "-zktest"},
		{"server_state", sc.self.role()},
		{"num_alive_connections", len(sc.clients())},
		{"outstanding_requests", sc.inProcess()},
		{"global_sessions", len(t.Sessions)},
		{"znode_count", t.Count()},
		{"ephemerals_count", t.EphemeralCount()},
		{"watch_count", sc.watchCount()},
		{"approximate_data_size", size},
		{"uptime", time.Since(sc.start).Milliseconds()},
	} {
		fmt.Fprintf(b, "zk_%s\t%v\n", metric.name, metric.value)
	}
}

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
	if sc.self.lead != nil { // a follower has no tracker
		dumpTracker(sc.self.lead.tracker, b)
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
	for _, id := range slices.Sorted(maps.Keys(k.sessions)) {
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
