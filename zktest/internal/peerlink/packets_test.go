package peerlink

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// packet encodes a packet of the quorum protocol; ids are pairs of a scheme and an identity.
func packet(kind int32, body []byte, ids ...string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(kind))
	b = binary.BigEndian.AppendUint64(b, 0x100000007)
	if body == nil {
		b = binary.BigEndian.AppendUint32(b, 1<<32-1)
	} else {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(body))), body...)
	}
	if ids == nil {
		return string(binary.BigEndian.AppendUint32(b, 1<<32-1))
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(ids)/2))
	for _, id := range ids {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(id))), id...)
	}
	return string(b)
}

func touchList(ids ...int64) []byte {
	b := []byte{}
	for _, id := range ids {
		b = binary.BigEndian.AppendUint64(b, uint64(id))
		b = binary.BigEndian.AppendUint32(b, 4000)
	}
	return b
}

// Whatever a connection carries arrives unchanged, and every ping in it is reported before
// it arrives.
func TestPassPackets(t *testing.T) {
	t.Parallel()
	const proposal, revalidate, followerInfo = 2, 6, 11
	snapshot := packet(peerSnap, nil) + "ZKSN" + packet(peerPing, touchList(9)) + "BenWasHe" + snapshotEnd
	tests := map[string]struct {
		stream string
		want   [][]int64
	}{
		"nothing": {"", nil},
		"pings":   {packet(peerPing, nil) + packet(peerPing, touchList()) + packet(peerPing, touchList(1, -2), "ip", "127.0.0.1"), [][]int64{nil, nil, {1, -2}}},
		"others": {packet(followerInfo, []byte("info")) + packet(proposal, bytes.Repeat([]byte{peerPing}, 100_000)) +
			packet(revalidate, []byte{0}, "digest", "a:b", "world", "anyone") + packet(peerPing, touchList(3)), [][]int64{{3}}},
		"a snapshot":      {snapshot + packet(peerPing, touchList(4)), [][]int64{{4}}},
		"cut short":       {packet(peerPing, touchList(1)) + packet(peerPing, touchList(2))[:20], [][]int64{{1}}},
		"in a snapshot":   {snapshot[:len(snapshot)-4], nil},
		"TLS":             {"\x16\x03\x01\x02\x00" + packet(peerPing, nil), nil},
		"a long body":     {packet(peerPing, nil)[:12] + "\x7f\xff\xff\xff" + "rest", nil},
		"no known type":   {packet(peerPing, touchList(1)) + packet(peerLast+1, nil) + packet(peerPing, nil), [][]int64{{1}}},
		"a short list":    {packet(peerPing, touchList(1)[:11]), [][]int64{nil}},
		"many identities": {packet(peerPing, nil)[:16] + "\x00\x0f\xff\xff" + strings.Repeat("x", 5000), nil},
	}
	readers := map[string]func(io.Reader) io.Reader{
		"at once":    func(r io.Reader) io.Reader { return r },
		"by bytes":   iotest.OneByteReader,
		"with error": iotest.DataErrReader,
	}
	for name, tt := range tests {
		for how, reader := range readers {
			var out bytes.Buffer
			var got [][]int64
			before := -1
			err := passPackets(&out, reader(strings.NewReader(tt.stream)), func(body []byte) {
				got = append(got, touched(body))
				if out.Len() <= before {
					t.Errorf("%s, %s: a ping did not arrive before the next was reported", name, how)
				}
				before = out.Len()
			})
			if err == nil {
				t.Errorf("%s, %s: no error at the end", name, how)
			}
			if out.String() != tt.stream {
				t.Errorf("%s, %s: %d bytes became %d", name, how, len(tt.stream), out.Len())
			}
			if !slices.EqualFunc(got, tt.want, slices.Equal) {
				t.Errorf("%s, %s: pings %v, want %v", name, how, got, tt.want)
			}
		}
	}
}
