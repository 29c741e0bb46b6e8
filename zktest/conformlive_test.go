package zktest

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest/internal/fourletter"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// live returns a pair of servers with short ticks and timeouts.
func live(t *testing.T) pair {
	real := StartReal(t, TickTime(200*time.Millisecond), ContainerCheck(200*time.Millisecond))
	ours := Start(t, versionOf(t, real), TickTime(200*time.Millisecond), MinSessionTimeout(400*time.Millisecond), MaxSessionTimeout(time.Minute),
		ContainerCheck(200*time.Millisecond))
	return pair{
		ours: func() (net.Conn, error) { return net.Dial("tcp", ours.Addr()) },
		real: func() (net.Conn, error) { return net.Dial("tcp", real.Addr(0)) },
	}
}

// liveFollowers returns a pair of ensembles, and connects to followers.
func liveFollowers(t *testing.T) pair {
	// The servers of an ensemble give each other up after five ticks, which a busy machine must not take.
	real := StartReal(t, Servers(3), TickTime(2*time.Second))
	ours := Start(t, versionOf(t, real), Servers(3), TickTime(2*time.Second), MaxSessionTimeout(time.Minute))
	return ensemblePair(t, false, ours, real)
}

// each runs f on both servers.
func (p pair) each(t *testing.T, clients int, f func(t *testing.T, w *world)) {
	for name, dial := range map[string]func() (net.Conn, error){"ours": p.ours, "real": p.real} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, dial)
			for range clients {
				w.join()
			}
			f(t, w)
		})
	}
}

// event waits for the next watch event.
func (c *rawClient) event() string {
	c.w.t.Helper()
	frame, err := readFrame(c.in)
	if err != nil {
		c.w.t.Fatalf("%s waits for an event: %v", c.label, err)
	}
	d := znode.Decode(frame)
	if xid := d.Int32(); xid != codec.XidEvent {
		c.w.t.Fatalf("%s waits for an event: reply %d", c.label, xid)
	}
	d.Bytes(12)
	kind := d.Int32()
	d.Int32()
	return strings.Join([]string{"", "created", "deleted", "changed", "children"}[kind:kind+1], "") + " " + d.String()
}

func (w *world) must(s step) string {
	w.t.Helper()
	_, reply := w.clients[s.who].roundTrip(s.op, s.body(0))
	if !strings.Contains(reply, " ok: ") {
		w.t.Fatalf("%v %q: %s", s, s.body(0), reply)
	}
	return reply
}

// A silent session ends after its timeout, rounded up to a tick. Its nodes are deleted, and its connection is closed.
func TestExpiryLikeReal(t *testing.T) {
	longtest.Only(t)
	for name, servers := range map[string]func(*testing.T) pair{"alone": live, "followers": liveFollowers} {
		t.Run(name, func(t *testing.T) { testExpiry(t, servers(t)) })
	}
}

func testExpiry(t *testing.T, servers pair) {
	const timeout = 6 * time.Second // to outlast a busy machine between two requests
	servers.each(t, 1, func(t *testing.T, w *world) {
		watcher := w.clients[0]
		silent := &rawClient{w: w, label: "silent"}
		w.clients = append(w.clients, silent)
		silent.open()
		silent.handshake(handshake{timeout: int32(timeout.Milliseconds())})
		w.must(mkdir(0, OpCreate, "/x", 0, znode.OpenACL))
		w.must(look(0, OpGetChildren, "/x", true))
		w.must(mkdir(1, OpCreate, "/x/e", 1, znode.OpenACL))
		watcher.event()
		w.must(look(0, OpExists, "/x/e", true))
		w.must(look(0, OpGetChildren, "/x", true))
		began := time.Now() // before the server can have heard of the ping
		w.must(say(1, OpPing, nil))
		got := []string{watcher.event(), watcher.event()}
		took := time.Since(began)
		if want := []string{"deleted /x/e", "children /x"}; !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		if took < timeout || took > 4*timeout { // late news is the machine's
			t.Errorf("expired after %v, want %v and at most a tick", took, timeout)
		}
		if _, err := readFrame(silent.in); !errors.Is(err, io.EOF) {
			t.Errorf("the session's connection: %v, want the end", err)
		}
		silent.open()
		if said := silent.handshake(handshake{}); !strings.HasPrefix(said, "refused") {
			t.Errorf("attaching to what has expired: %s", said)
		}
	})
}

// Containers that have become empty and TTL nodes whose time is over are deleted. Containers that never
// had a child stay.
func TestReapLikeReal(t *testing.T) {
	longtest.InCI(t)
	live(t).each(t, 1, func(t *testing.T, w *world) {
		c := w.clients[0]
		for _, path := range []string{"/outer", "/outer/inner", "/never"} {
			w.must(mkdir(0, OpCreateContainer, path, 4, znode.OpenACL))
		}
		w.must(mkdir(0, OpCreate, "/outer/inner/child", 0, znode.OpenACL))
		// On a busy machine the node can be gone before it is looked for.
		there := false
		for ttl := int64(2000); !there && ttl < 20_000; ttl *= 2 {
			w.must(say(0, OpCreateTTL, func(e *znode.Encoder) {
				e.String("/ttl")
				e.Buffer(nil)
				e.ACL(znode.OpenACL)
				e.Int32(5)
				e.Int64(ttl)
			}))
			_, reply := c.roundTrip(OpExists, look(0, OpExists, "/ttl", true).body(0))
			there = strings.Contains(reply, " ok: ")
		}
		if !there {
			t.Fatal("no TTL node lives until it is looked for")
		}
		if got, want := c.event(), "deleted /ttl"; got != want {
			t.Errorf("event %q, want %q", got, want)
		}
		w.must(look(0, OpExists, "/outer", true))
		w.must(look(0, OpExists, "/outer/inner", true))
		w.must(remove(0, "/outer/inner/child", -1))
		got := []string{c.event(), c.event()}
		if want := []string{"deleted /outer/inner", "deleted /outer"}; !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		w.must(look(0, OpExists, "/never", false))
		if events, reply := c.roundTrip(OpDelete, remove(0, "/outer", -1).body(0)); len(events) > 0 || !strings.Contains(reply, "no node") {
			t.Errorf("deleting what is gone: %v, %s", events, reply)
		}
	})
}

// Bytes that are not a frame end their connection, and do no other harm.
func TestHostileLikeReal(t *testing.T) {
	longtest.InCI(t)
	hello := connectFrame(0, make([]byte, 16), 30_000)
	frame := func(size uint32, rest ...byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, size), rest...)
	}
	after := func(b []byte) []byte { return append(slices.Clone(hello), b...) }
	hostile := map[string][]byte{
		"negative length first":    frame(1 << 31),
		"length of 4 GB first":     frame(1<<32 - 1),
		"empty first":              frame(0),
		"short handshake":          frame(8, make([]byte, 8)...),
		"handshake, long password": frame(28, append(make([]byte, 24), 0x7f, 0xff, 0xff, 0xff)...),
		"negative length":          after(frame(1 << 31)),
		"too long":                 after(frame(1 << 20)),
		"too long first":           frame(1 << 20),
		"empty":                    after(frame(0)),
		"header of four bytes":     after(frame(4, 0, 0, 0, 1)),
	}
	newPair(t).each(t, 1, func(t *testing.T, w *world) {
		for name, sent := range hostile {
			conn, err := w.dial()
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
			go func() { _, _ = conn.Write(sent) }() // a pipe may be closed halfway
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
				t.Errorf("%s: the connection stays", name)
			}
			_ = conn.Close()
		}
		w.must(look(0, OpExists, "/", false))
		// The longest request that is read. What follows the path is ignored.
		w.must(say(0, OpExists, func(e *znode.Encoder) {
			e.String("/")
			e.Bool(false)
			e.B = append(e.B, make([]byte, 1<<20-1-len(e.B)-8)...)
		}))
	})
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// The four-letter words have what monitoring reads, as with a real server.
func TestWordsLikeReal(t *testing.T) {
	real := StartReal(t)
	ours := Start(t, versionOf(t, real), TickTime(500*time.Millisecond), MaxSessionTimeout(time.Minute))
	for _, addr := range []string{ours.Addr(), real.Addr(0)} {
		w := newWorld(t, func() (net.Conn, error) { return net.Dial("tcp", addr) })
		w.join()
		w.join()
		w.must(mkdir(0, OpCreate, "/node", 0, znode.OpenACL))
		w.must(mkdir(0, OpCreate, "/ephemeral", 1, znode.OpenACL))
		w.must(look(0, OpGetData, "/node", true))
		w.must(look(0, OpGetChildren, "/node", true))
		w.must(look(1, OpGetData, "/node", true))
		word := func(name string) string {
			text, err := fourletter.Ask(t.Context(), addr, name)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		metrics := fourletter.Metrics(word("mntr"))
		for name, want := range map[string]string{
			"zk_znode_count": "7", "zk_ephemerals_count": "1", "zk_watch_count": "3",
			"zk_server_state": "standalone", "zk_outstanding_requests": "0", "zk_global_sessions": "2",
			"zk_approximate_data_size": metrics["zk_approximate_data_size"],
		} {
			if got := metrics[name]; got != want || got == "" {
				t.Errorf("%s: %s is %q, want %q", addr, name, got, want)
			}
		}
		t.Logf("%s: zk_approximate_data_size %s, zk_num_alive_connections %s", addr,
			metrics["zk_approximate_data_size"], metrics["zk_num_alive_connections"])
		if m, err := fourletter.Mode(t.Context(), addr); m != "standalone" || err != nil {
			t.Errorf("%s: mode %q, %v", addr, m, err)
		}
		for name, wants := range map[string][]string{
			"ruok": {"imok"},
			"envi": {"Environment:\nzookeeper.version=" + ours.state.Imitated().Number + "-"},
			"srvr": {"Zookeeper version: " + ours.state.Imitated().Number, "Node count: 7\n", "Outstanding: 0\n", "Zxid: 0x4\n"},
			"dump": {"Session Sets (", "Sessions with Ephemerals (1):\n", "\t/ephemeral\n"},
			"wchp": {"/node\n\t0x"},
		} {
			text := word(name)
			for _, want := range wants {
				if !strings.Contains(text, want) {
					t.Errorf("%s: %s has no %q:\n%s", addr, name, want, text)
				}
			}
		}
	}
}
