package zktest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sync"
)

// A PeerPing is a leader's ping of another server, sent twice a tick, or that server's
// answer to it.
type PeerPing struct {
	Leader, Server int
	Answer         bool

	// Touched holds, in an answer, the ids of the sessions that the server has heard of
	// since its last answer. From no other message does a leader learn that the client of
	// another server is alive, once that client is connected: it counts the session's
	// timeout from the moment at which it reads this list.
	Touched []int64
}

// OnPing has f called for every ping between the leader and another server, and for every
// answer, before it is passed on. While f runs, that direction of the link stands still. If
// f cuts the link, with [Ensemble.Partition] or [Ensemble.PartitionOneWay], the ping is the
// first thing that does not arrive. f may be called for several servers at once, and once
// more after stop was called. It is an error without the option [Partitions].
//
// Where servers speak TLS or SASL to each other, f is never called.
func (e *Ensemble) OnPing(f func(PeerPing)) (stop func(), err error) {
	e.made()
	if e.links == nil {
		return nil, errNoLinks
	}
	var stops []func()
	for i, row := range e.links {
		for j, l := range row {
			if l == nil {
				continue
			}
			stops = append(stops, l.pings.add(func(answer bool, touched []int64) {
				f(PeerPing{Leader: j, Server: i, Answer: answer, Touched: touched})
			}))
		}
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}, nil
}

// pingWatchers are the functions to call for the pings on one link.
type pingWatchers struct {
	mu   sync.Mutex
	list []*pingWatcher // never changed in place
}

type pingWatcher struct {
	f func(answer bool, touched []int64)
}

func (ws *pingWatchers) add(f func(answer bool, touched []int64)) (remove func()) {
	w := &pingWatcher{f}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.list = append(slices.Clip(ws.list), w)
	return func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		ws.list = slices.DeleteFunc(slices.Clone(ws.list), func(o *pingWatcher) bool { return o == w })
	}
}

// observe returns the relay for one direction of the link. It is the follower that
// connects, so what goes to the server that was connected to are answers.
func (ws *pingWatchers) observe(answer bool) relay {
	return func(to io.Writer, from io.Reader) error {
		return passPackets(to, from, func(data []byte) {
			ws.mu.Lock()
			list := ws.list
			ws.mu.Unlock()
			for _, w := range list {
				w.f(answer, touched(data))
			}
		})
	}
}

// touched reads the body of an answer: pairs of a session's id and its timeout in
// milliseconds.
func touched(data []byte) []int64 {
	var ids []int64
	for ; len(data) >= 12; data = data[12:] {
		ids = append(ids, int64(binary.BigEndian.Uint64(data)))
	}
	return ids
}

// The packets of the quorum protocol that matter here. A packet is a type (int), a zxid
// (long), a body (buffer) and identities (vector of pairs of strings), without a length
// around it.
const (
	peerPing = 5
	peerSnap = 15 // a snapshot follows, which is no packet, up to snapshotEnd
	peerLast = 19 // the greatest type there is

	maxPeerBody  = 16 << 20
	maxPeerIDs   = 1 << 10
	maxPeerIDLen = 1 << 10
)

// snapshotEnd is a string of ZooKeeper's encoding: its length goes first.
const snapshotEnd = "\x00\x00\x00\x0aBenWasHere"

// errNotPackets is why a connection is copied without another look at it.
var errNotPackets = errors.New("zktest: not the quorum protocol")

// passPackets passes a connection on packet by packet, each in one write, and calls onPing
// with the body of a ping before passing it on. A connection that turns out to carry
// something else is copied.
func passPackets(to io.Writer, from io.Reader, onPing func(body []byte)) error {
	p := &packets{in: bufio.NewReader(from)}
	for {
		kind, body, err := p.next()
		if err == nil && kind == peerPing {
			onPing(body)
		}
		if _, werr := to.Write(p.raw); werr != nil {
			return werr
		}
		if err == nil && kind == peerSnap {
			err = p.passSnapshot(to)
		}
		switch {
		case errors.Is(err, errNotPackets):
			if _, err := p.in.WriteTo(to); err != nil {
				return err
			}
			return io.EOF
		case err != nil:
			return err
		}
	}
}

// packets reads packets.
type packets struct {
	in  *bufio.Reader
	raw []byte // all that was read of the current packet
}

// next reads one packet. What it has read is in p.raw, also if it fails.
func (p *packets) next() (kind int32, body []byte, err error) {
	p.raw = p.raw[:0]
	if kind, err = p.number(1, peerLast); err != nil {
		return 0, nil, err
	}
	if _, err = p.read(8); err != nil { // the zxid
		return 0, nil, err
	}
	if body, err = p.buffer(maxPeerBody); err != nil {
		return 0, nil, err
	}
	ids, err := p.number(-1, maxPeerIDs)
	for range 2 * max(ids, 0) {
		if err == nil {
			_, err = p.buffer(maxPeerIDLen)
		}
	}
	return kind, body, err
}

// read returns the next n bytes, valid until next is called.
func (p *packets) read(n int) ([]byte, error) {
	start := len(p.raw)
	p.raw = slices.Grow(p.raw, n)[:start+n]
	got, err := io.ReadFull(p.in, p.raw[start:])
	p.raw = p.raw[:start+got]
	return p.raw[start:], err
}

// number reads an int and refuses one that is out of bounds.
func (p *packets) number(least, most int32) (int32, error) {
	b, err := p.read(4)
	if err != nil {
		return 0, err
	}
	n := int32(binary.BigEndian.Uint32(b))
	if n < least || n > most {
		return 0, errNotPackets
	}
	return n, nil
}

// buffer reads a length, -1 for none, and as many bytes.
func (p *packets) buffer(most int32) ([]byte, error) {
	n, err := p.number(-1, most)
	if err != nil || n <= 0 {
		return nil, err
	}
	return p.read(int(n))
}

// passSnapshot passes everything on up to the end of a snapshot.
func (p *packets) passSnapshot(to io.Writer) error {
	const atOnce = 32 << 10
	var out, tail []byte
	for string(tail) != snapshotEnd {
		b, err := p.in.ReadByte()
		if err == nil {
			out = append(out, b)
			tail = append(tail, b)
			tail = tail[max(0, len(tail)-len(snapshotEnd)):]
		}
		if err != nil || p.in.Buffered() == 0 || len(out) == atOnce || string(tail) == snapshotEnd {
			if _, werr := to.Write(out); werr != nil {
				return werr
			}
			out = out[:0]
		}
		if err != nil {
			return err
		}
	}
	return nil
}
