package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"testing"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/outbox"
)

// replayed is a connection on which each request but the handshake is answered at once with the same reply. The answer to
// the handshake is there from the beginning.
type replayed struct {
	net.Conn
	asked bool // for the session
	reply []byte
	rest  chan []byte
	now   []byte
}

func (c *replayed) Write(b []byte) (int, error) {
	if !c.asked {
		c.asked = true
		return len(b), nil
	}
	reply := bytes.Clone(c.reply)
	copy(reply[4:8], b[4:8]) // the request's number
	c.rest <- reply
	return len(b), nil
}

func (c *replayed) Read(b []byte) (int, error) {
	if len(c.now) == 0 {
		c.now = <-c.rest
		if c.now == nil {
			return 0, net.ErrClosed
		}
	}
	n := copy(b, c.now)
	c.now = c.now[n:]
	return n, nil
}
func (c *replayed) Close() error { return nil }

// BenchmarkConn is one request and its reply.
func BenchmarkConn(b *testing.B) {
	listing := func(n int) []byte {
		p := binary.BigEndian.AppendUint32(nil, uint32(n))
		for i := range n {
			p = append(p, sized(fmt.Sprintf("_c_aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee-lock-%010d", i))...)
		}
		return append(p, aStat...)
	}
	for _, c := range []struct {
		name string
		op   int32
		body []byte
	}{
		{"sync", codec.OpSync, sized("/")},
		{"exists", codec.OpExists, aStat},
		{"children=10", codec.OpGetChildren2, listing(10)},
		{"children=1000", codec.OpGetChildren2, listing(1000)},
		{"children=100000", codec.OpGetChildren2, listing(100_000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			conn := &replayed{reply: replyFrame(0, 0, c.body...), rest: make(chan []byte, 1000), now: greetingFrame(42, 1<<30)}
			w := New(conn, config(&fakeEvents{}))
			over := make(chan error)
			go func() { over <- w.Serve(codec.Hello{}) }()
			ended := make(chan outbox.Reply)
			b.ReportAllocs()
			b.SetBytes(int64(len(conn.reply)))
			for b.Loop() {
				w.Call(outbox.Call{Frame: callFrame(c.op, "/a"), Done: func(r outbox.Reply) { ended <- r }})
				if r := <-ended; r.Err != nil {
					b.Fatal(r.Err)
				}
			}
			w.Cut(net.ErrClosed)
			close(conn.rest)
			<-over
		})
	}
}
