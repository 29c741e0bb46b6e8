package peerlink

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

// touched returns the ids in the body of an answer, which consists of pairs of a session's id
// and its timeout in milliseconds.
func touched(data []byte) []int64 {
	var ids []int64
	for ; len(data) >= 12; data = data[12:] {
		ids = append(ids, int64(binary.BigEndian.Uint64(data)))
	}
	return ids
}

// The types of packets in the quorum protocol that matter here. A packet is a type (int), a zxid (long), a body
// (buffer) and identities (a vector of pairs of strings). It has no length in front.
const (
	peerPing = 5
	peerSnap = 15 // a snapshot follows, which is not a packet, up to snapshotEnd
	peerLast = 19 // the largest type

	maxPeerBody  = 16 << 20
	maxPeerIDs   = 1 << 10
	maxPeerIDLen = 1 << 10
)

// snapshotEnd ends a snapshot. It is a string in ZooKeeper's encoding, with its length in front.
const snapshotEnd = "\x00\x00\x00\x0aBenWasHere"

// errNotPackets says that a connection carries something else than packets.
var errNotPackets = errors.New("peerlink: not the quorum protocol")

// passPackets passes on packet by packet, each in one write. It calls onPing with the body of each ping before it
// passes the ping on. Once it meets something else than a packet, it copies the rest unread.
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

// packets reads packets from a connection.
type packets struct {
	in  *bufio.Reader
	raw []byte // the bytes read of the current packet
}

// next reads one packet. The bytes that it has read are in p.raw, even if it returns an error.
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

// number reads an int. A number outside the bounds is errNotPackets.
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

// buffer reads a length and that many bytes. A length of -1 stands for no buffer.
func (p *packets) buffer(most int32) ([]byte, error) {
	n, err := p.number(-1, most)
	if err != nil || n <= 0 {
		return nil, err
	}
	return p.read(int(n))
}

// passSnapshot passes on all bytes up to the end of a snapshot.
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
