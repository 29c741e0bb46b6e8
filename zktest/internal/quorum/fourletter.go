package quorum

import (
	"fmt"
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

func (sc *scope) packets() (received, sent int64) {
	for _, m := range sc.all {
		received += m.received
		sent += m.sent
	}
	for _, p := range sc.clients() {
		received += p.received
		sent += p.sent
	}
	return received, sent
}

// inProcess returns how many requests the servers have in process.
func (sc *scope) inProcess() int {
	n := 0
	for _, m := range sc.all {
		n += m.inProcess
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
	summary(sc, b)
}

func summary(sc *scope, b *strings.Builder) {
	received, sent := sc.packets()
	fmt.Fprintf(b, "Latency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: %d\n",
		received, sent, len(sc.clients()), sc.inProcess())
	fmt.Fprintf(b, "Zxid: 0x%x\nMode: %s\nNode count: %d\n", sc.self.tree.Zxid, sc.self.role(), sc.self.tree.Count())
}

func mntr(sc *scope, b *strings.Builder) {
	t := sc.self.tree
	size := 0
	for path, n := range t.Nodes {
		size += len(path) + len(n.Data)
	}
	received, sent := sc.packets()
	for _, metric := range []struct {
		name  string
		value any
	}{
		{"version", sc.conf.Release.Number + "-zktest"},
		{"server_state", sc.self.role()},
		{"avg_latency", "0.0"},
		{"max_latency", 0},
		{"min_latency", 0},
		{"packets_received", received},
		{"packets_sent", sent},
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
