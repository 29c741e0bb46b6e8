package zktest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
	"github.com/turnstile-go/turnstile/zktest/internal/fourletter"
)

// version is what the server says it is: the release it is compared with.
const version = "3.8.0"

// words are ZooKeeper's administrative commands, as far as they are there.
var words = map[string]func(*scope, *strings.Builder){
	"ruok": func(_ *scope, b *strings.Builder) { b.WriteString("imok") },
	"isro": func(_ *scope, b *strings.Builder) { b.WriteString("rw") },
	"srvr": srvr,
	"stat": stat,
	"mntr": mntr,
	"cons": cons,
	"dump": dump,
	"wchs": wchs,
	"wchc": wchc,
	"wchp": wchp,
}

// A scope is what a four-letter word is asked of: one server, or an ensemble as
// a whole.
type scope struct {
	*state
	self *member   // who answers
	all  []*member // whose clients count
}

// Word answers one of ZooKeeper's four-letter words, which TCP clients may send
// as well: "ruok", "isro", "srvr", "stat", "mntr", "cons", "dump", "wchs",
// "wchc", "wchp". It is an error if the server is closed, or does not know the
// word. Of an ensemble it is the leader's answer, with the clients and watches of
// all servers; a TCP client gets that of its server.
func (s *Server) Word(word string) (string, error) {
	s.made()
	answer, ok := words[word]
	if !ok {
		return "", fmt.Errorf("zktest: no four-letter word %q", word)
	}
	var b strings.Builder
	err := s.do(context.Background(), func(st *state) { answer(&scope{st, st.spokesman(), st.members}, &b) })
	return b.String(), err
}

// Metrics returns what the server says to mntr, by name, as
// [Ensemble.Metrics] does. It is an error if the server is closed.
func (s *Server) Metrics() (map[string]string, error) {
	s.made()
	text, err := s.Word("mntr")
	if err != nil {
		return nil, err
	}
	return fourletter.Metrics(text), nil
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
	if text, err := s.wordOf(conn.(arrival).server, string(head)); err == nil {
		_, _ = io.WriteString(conn, text)
	}
	return true
}

// wordOf answers for one server, once that goes on if it stands still.
func (s *Server) wordOf(i int, word string) (string, error) {
	var b strings.Builder
	done := make(chan struct{})
	if err := s.do(context.Background(), func(st *state) {
		m := st.members[i]
		m.whenAwake(func() {
			defer close(done)
			switch {
			case m.stopped:
			case !m.serving() && word != "ruok":
				b.WriteString("This ZooKeeper instance is not currently serving requests\n")
			default:
				words[word](&scope{st, m, []*member{m}}, &b)
			}
		})
	}); err != nil {
		return "", err
	}
	select {
	case <-done:
		return b.String(), nil
	case <-s.faults.done:
		return "", errServerClosed
	}
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

// clients returns the connections there are, the oldest first.
func (sc *scope) clients() []*peer { return sc.connections(sc.all...) }

func srvr(sc *scope, b *strings.Builder) {
	fmt.Fprintf(b, "Zookeeper version: %s-zktest\n", version)
	summary(sc, b)
}

func stat(sc *scope, b *strings.Builder) {
	fmt.Fprintf(b, "Zookeeper version: %s-zktest\nClients:\n", version)
	for _, p := range sc.clients() {
		fmt.Fprintf(b, " /%s:%d[1](queued=0,recved=%d,sent=%d)\n", p.addr, p.ordinal, p.received, p.sent)
	}
	b.WriteString("\n")
	summary(sc, b)
}

func summary(sc *scope, b *strings.Builder) {
	received, sent := sc.packets()
	fmt.Fprintf(b, "Latency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: 0\n",
		received, sent, len(sc.clients()))
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
		{"version", version + "-zktest"},
		{"server_state", sc.self.role()},
		{"avg_latency", "0.0"},
		{"max_latency", 0},
		{"min_latency", 0},
		{"packets_received", received},
		{"packets_sent", sent},
		{"num_alive_connections", len(sc.clients())},
		{"outstanding_requests", 0},
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

func cons(sc *scope, b *strings.Builder) {
	for _, p := range sc.clients() {
		fmt.Fprintf(b, " /%s:%d[1](queued=0,recved=%d,sent=%d", p.addr, p.ordinal, p.received, p.sent)
		if p.ready {
			fmt.Fprintf(b, ",sid=0x%x,lop=%s,est=%d,to=%d,lcxid=0x%x,lzxid=0x%x,lresp=%d,llat=0,minlat=0,avglat=0,maxlat=0",
				p.session, wire.OpName(p.last.op), p.since.UnixMilli(), p.timeout.Milliseconds(),
				uint32(p.last.xid), uint64(p.last.zxid), p.last.at.UnixMilli())
		}
		b.WriteString(")\n")
	}
	b.WriteString("\n")
}
