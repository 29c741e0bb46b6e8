package peerlink

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
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
	in := bufio.NewReader(from)
	for {
		var raw bytes.Buffer
		kind, body, err := packet(io.TeeReader(in, &raw))
		if err == nil && kind == peerPing {
			onPing(body)
		}
		if _, werr := raw.WriteTo(to); werr != nil {
			return werr
		}
		if err == nil && kind == peerSnap {
			err = passSnapshot(to, in)
		}
		switch {
		case errors.Is(err, errNotPackets):
			if _, err := in.WriteTo(to); err != nil {
				return err
			}
			return io.EOF
		case err != nil:
			return err
		}
	}
}

// packet reads one packet.
func packet(in io.Reader) (kind int32, body []byte, err error) {
	if kind, err = number(in, 1, peerLast); err != nil {
		return 0, nil, err
	}
	if _, err = io.CopyN(io.Discard, in, 8); err != nil { // the zxid
		return 0, nil, err
	}
	if body, err = buffer(in, maxPeerBody); err != nil {
		return 0, nil, err
	}
	ids, err := number(in, -1, maxPeerIDs)
	for range 2 * max(ids, 0) {
		if err == nil {
			_, err = buffer(in, maxPeerIDLen)
		}
	}
	return kind, body, err
}

// number reads an int. A number outside the bounds is errNotPackets.
func number(in io.Reader, least, most int32) (n int32, err error) {
	if err = binary.Read(in, binary.BigEndian, &n); err == nil && (n < least || n > most) {
		err = errNotPackets
	}
	return n, err
}

// buffer reads a length and that many bytes. A length of -1 stands for no buffer.
func buffer(in io.Reader, most int32) ([]byte, error) {
	n, err := number(in, -1, most)
	if err != nil || n <= 0 {
		return nil, err
	}
	b := make([]byte, n)
	_, err = io.ReadFull(in, b)
	return b, err
}

// passSnapshot passes on all bytes up to the end of a snapshot.
func passSnapshot(to io.Writer, in *bufio.Reader) error {
	const atOnce = 32 << 10
	var out, tail []byte
	for string(tail) != snapshotEnd {
		b, err := in.ReadByte()
		if err == nil {
			out = append(out, b)
			tail = append(tail, b)
			tail = tail[max(0, len(tail)-len(snapshotEnd)):]
		}
		if err != nil || in.Buffered() == 0 || len(out) == atOnce || string(tail) == snapshotEnd {
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
