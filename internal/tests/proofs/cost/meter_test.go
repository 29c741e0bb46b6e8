package cost

import (
	"encoding/binary"
	"maps"
	"net"
	"sync"

	"github.com/turnstile-go/turnstile/zktest"
)

// meter counts what crosses the connections that it taps, by the kind of request. A reply
// is counted with its request; watch events are a kind of their own.
type meter struct {
	mu    sync.Mutex
	total traffic
}

// traffic has the counts of each kind of request.
type traffic map[zktest.Op]tally

type tally struct {
	requests int
	replies  int // and events
	sent     int // bytes, with the four of each frame's length
	received int
}

func (t tally) bytes() int { return t.sent + t.received }

func newMeter() *meter { return &meter{total: make(traffic)} }

func (m *meter) add(op zktest.Op, d tally) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.total[op]
	m.total[op] = tally{t.requests + d.requests, t.replies + d.replies, t.sent + d.sent, t.received + d.received}
}

// reset forgets all counts.
func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.total)
}

func (m *meter) read() traffic {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.total)
}

// of returns the sum over some kinds.
func (t traffic) of(ops ...zktest.Op) tally {
	var sum tally
	for _, op := range ops {
		o := t[op]
		sum = tally{sum.requests + o.requests, sum.replies + o.replies, sum.sent + o.sent, sum.received + o.received}
	}
	return sum
}

// except returns the sum over all other kinds.
func (t traffic) except(ops ...zktest.Op) tally {
	rest := maps.Clone(t)
	for _, op := range ops {
		delete(rest, op)
	}
	var all []zktest.Op
	for op := range rest {
		all = append(all, op)
	}
	return rest.of(all...)
}

func (m *meter) tap(c net.Conn) net.Conn {
	return &tap{Conn: c, meter: m, asked: make(map[int32]zktest.Op)}
}

// tap is a client's connection whose traffic is counted.
type tap struct {
	net.Conn
	meter *meter

	mu       sync.Mutex
	up, down splitter
	asked    map[int32]zktest.Op // not answered yet, by xid
}

func (t *tap) Write(b []byte) (int, error) {
	t.mu.Lock()
	t.up.feed(b, t.sent)
	t.mu.Unlock()
	return t.Conn.Write(b)
}

func (t *tap) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.mu.Lock()
	t.down.feed(b[:n], t.received)
	t.mu.Unlock()
	return n, err
}

// The xids of frames that are not the answer to one request.
const (
	xidEvent = -1
	xidPing  = -2
)

func (t *tap) sent(frame []byte, first bool) {
	op := zktest.OpConnect
	if !first {
		op = zktest.Op(word(frame, 1))
		t.asked[word(frame, 0)] = op
	}
	t.meter.add(op, tally{requests: 1, sent: 4 + len(frame)})
}

func (t *tap) received(frame []byte, first bool) {
	op := zktest.OpConnect
	if !first {
		switch xid := word(frame, 0); xid {
		case xidEvent:
			op = zktest.OpNotification
		case xidPing:
			op = zktest.OpPing
		default:
			op = t.asked[xid]
			delete(t.asked, xid)
		}
	}
	t.meter.add(op, tally{replies: 1, received: 4 + len(frame)})
}

// word returns the i-th number of a frame. A request begins with its xid and its kind, and a reply
// with its xid.
func word(frame []byte, i int) int32 { return int32(binary.BigEndian.Uint32(frame[4*i:])) }

// splitter cuts a stream into frames.
type splitter struct {
	rest []byte
	any  bool // a frame has come
}

func (s *splitter) feed(b []byte, each func(frame []byte, first bool)) {
	s.rest = append(s.rest, b...)
	for len(s.rest) >= 4 {
		n := 4 + int(binary.BigEndian.Uint32(s.rest))
		if len(s.rest) < n {
			return
		}
		each(s.rest[4:n], !s.any)
		s.any = true
		s.rest = s.rest[n:]
	}
}
