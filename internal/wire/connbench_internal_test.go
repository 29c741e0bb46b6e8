package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
)

// replayed is a connection on which each request is answered at once with the same reply.
type replayed struct {
	net.Conn
	reply []byte
	rest  []byte
}

func (c *replayed) Write(b []byte) (int, error) {
	if len(b) >= 8 {
		copy(c.reply[4:8], b[4:8]) // the request's number
	}
	c.rest = c.reply
	return len(b), nil
}

func (c *replayed) Read(b []byte) (int, error) {
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
func (c *replayed) Close() error { return nil }

// quietEvents keeps nothing, and lets no heartbeats begin.
type quietEvents struct{ *fakeEvents }

func (quietEvents) Answered(Answer) {}
func (quietEvents) Go(func())       {}

// BenchmarkConn is one request and its reply, as zk.Conn writes and reads them.
func BenchmarkConn(b *testing.B) {
	stat := make([]byte, 68)
	listing := func(n int) []byte {
		p := binary.BigEndian.AppendUint32(nil, uint32(n))
		for i := range n {
			name := fmt.Sprintf("_c_aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee-lock-%010d", i)
			p = append(binary.BigEndian.AppendUint32(p, uint32(len(name))), name...)
		}
		return append(p, stat...)
	}
	for _, c := range []struct {
		name string
		op   int32
		body []byte
	}{
		{"sync", 9, append([]byte{0, 0, 0, 1}, '/')},
		{"exists", 3, stat},
		{"children=10", 12, listing(10)},
		{"children=1000", 12, listing(1000)},
		{"children=100000", 12, listing(100_000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			conn := &replayed{reply: greetingFrame(42, 6000)}
			w := New(conn, config(quietEvents{&fakeEvents{}}))
			defer w.Close()
			buf := make([]byte, 16<<20)
			read := func() {
				if _, err := io.ReadFull(w, buf[:4]); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(w, buf[:binary.BigEndian.Uint32(buf)]); err != nil {
					b.Fatal(err)
				}
			}
			request := make([]byte, 48)
			_, _ = w.Write(request)
			read()
			conn.reply = replyFrame(0, 0)
			conn.reply = append(bytes.Clone(conn.reply), c.body...)
			binary.BigEndian.PutUint32(conn.reply, uint32(len(conn.reply)-4))
			binary.BigEndian.PutUint32(request[8:], uint32(c.op))
			b.ReportAllocs()
			b.SetBytes(int64(len(conn.reply)))
			for xid := uint32(1); b.Loop(); xid++ {
				binary.BigEndian.PutUint32(request[4:], xid)
				_, _ = w.Write(request)
				read()
			}
		})
	}
}
