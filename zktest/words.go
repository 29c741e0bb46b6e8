package zktest

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"
)

// version is what the server says it is: the release it is compared with.
const version = "3.8.0"

// words are ZooKeeper's administrative commands, as far as they are there.
var words = map[string]func(*state, *strings.Builder){
	"ruok": func(_ *state, b *strings.Builder) { b.WriteString("imok") },
	"isro": func(_ *state, b *strings.Builder) { b.WriteString("rw") },
	"srvr": srvr,
	"stat": stat,
	"mntr": mntr,
	"cons": cons,
	"dump": dump,
	"wchs": wchs,
	"wchc": wchc,
	"wchp": wchp,
}

// Word answers one of ZooKeeper's four-letter words, which TCP clients may send
// as well: "ruok", "isro", "srvr", "stat", "mntr", "cons", "dump", "wchs",
// "wchc", "wchp". It is an error if the server is closed, or does not know the
// word.
func (s *Server) Word(word string) (string, error) {
	answer, ok := words[word]
	if !ok {
		return "", fmt.Errorf("zktest: no four-letter word %q", word)
	}
	var b strings.Builder
	err := s.do(context.Background(), func(st *state) { answer(st, &b) })
	return b.String(), err
}

// Metrics returns what the server says to mntr, by name, as
// [Ensemble.Metrics] does. It is an error if the server is closed.
func (s *Server) Metrics() (map[string]string, error) {
	text, err := s.Word("mntr")
	if err != nil {
		return nil, err
	}
	return parseMetrics(text), nil
}

// serveWord answers a connection that begins with a word. A blackhole or a
// delay does not concern it. It reports whether it did.
func (s *Server) serveWord(conn net.Conn, in *bufio.Reader) bool {
	head, err := in.Peek(4)
	if err != nil {
		return false
	}
	if _, ok := words[string(head)]; !ok {
		return false
	}
	if text, err := s.Word(string(head)); err == nil {
		_, _ = io.WriteString(conn, text)
	}
	return true
}

func (st *state) packets() (received, sent int64) {
	received, sent = st.received, st.sent
	for p := range st.peers {
		received += p.received
		sent += p.sent
	}
	return received, sent
}

// connections returns those there are, the oldest first.
func (st *state) connections() []*peer {
	return slices.SortedFunc(maps.Keys(st.peers), func(a, b *peer) int { return cmp.Compare(a.ordinal, b.ordinal) })
}

func srvr(st *state, b *strings.Builder) {
	fmt.Fprintf(b, "Zookeeper version: %s-zktest\n", version)
	summary(st, b)
}

func stat(st *state, b *strings.Builder) {
	fmt.Fprintf(b, "Zookeeper version: %s-zktest\nClients:\n", version)
	for _, p := range st.connections() {
		fmt.Fprintf(b, " /%s:%d[1](queued=0,recved=%d,sent=%d)\n", p.addr, p.ordinal, p.received, p.sent)
	}
	b.WriteString("\n")
	summary(st, b)
}

func summary(st *state, b *strings.Builder) {
	received, sent := st.packets()
	fmt.Fprintf(b, "Latency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: 0\n",
		received, sent, len(st.peers))
	fmt.Fprintf(b, "Zxid: 0x%x\nMode: standalone\nNode count: %d\n", st.zxid, st.main.tree.count())
}

func mntr(st *state, b *strings.Builder) {
	t := st.main.tree
	size := 0
	for path, n := range t.nodes {
		size += len(path) + len(n.data)
	}
	received, sent := st.packets()
	for _, metric := range []struct {
		name  string
		value any
	}{
		{"version", version + "-zktest"},
		{"server_state", "standalone"},
		{"avg_latency", "0.0"},
		{"max_latency", 0},
		{"min_latency", 0},
		{"packets_received", received},
		{"packets_sent", sent},
		{"num_alive_connections", len(st.peers)},
		{"outstanding_requests", 0},
		{"global_sessions", len(st.sessions)},
		{"znode_count", t.count()},
		{"ephemerals_count", t.ephemeralCount()},
		{"watch_count", st.watchCount()},
		{"approximate_data_size", size},
		{"uptime", time.Since(st.start).Milliseconds()},
	} {
		fmt.Fprintf(b, "zk_%s\t%v\n", metric.name, metric.value)
	}
}

func cons(st *state, b *strings.Builder) {
	for _, p := range st.connections() {
		fmt.Fprintf(b, " /%s:%d[1](queued=0,recved=%d,sent=%d", p.addr, p.ordinal, p.received, p.sent)
		if p.session != nil {
			fmt.Fprintf(b, ",sid=0x%x,lop=%s,est=%d,to=%d,lcxid=0x%x,lzxid=0x%x,lresp=%d,llat=0,minlat=0,avglat=0,maxlat=0",
				p.session.id, p.last.op, p.since.UnixMilli(), p.timeout.Milliseconds(),
				uint32(p.last.xid), uint64(p.last.zxid), p.last.at.UnixMilli())
		}
		b.WriteString(")\n")
	}
	b.WriteString("\n")
}
