package zktest

import (
	"context"
	"net"
	"testing"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// FuzzServer sends arbitrary bytes to a server, and checks that the server still answers another client.
func FuzzServer(f *testing.F) {
	g := newGenerator(1)
	for i, op := range append(append([]Op{}, common...), rare...) {
		body, _ := g.request(op)
		f.Add(byte(i), int32(op), body(0))
	}
	f.Add(byte(0), int32(0), connectFrame(1, []byte("password"), 1000))
	f.Add(byte(1), int32(0), codec.CloseFrame(7))
	f.Add(byte(0), int32(0), []byte("ruok"))
	srv := Start(f, MaxPacket(1<<16))
	dial := func() (net.Conn, error) { return srv.Dialer()(context.Background(), "pipe", "") }
	other := newWorld(f, dial).join()
	f.Fuzz(func(t *testing.T, how byte, op int32, data []byte) {
		hello := connectFrame(0, make([]byte, 16), 30_000)
		conn, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			b := make([]byte, 1024)
			for {
				if _, err := conn.Read(b); err != nil {
					return
				}
			}
		}()
		switch how % 3 {
		case 0: // as it is
			_, _ = conn.Write(data)
		case 1: // as it is, in a session
			_, _ = conn.Write(append(hello, data...))
		case 2: // as the body of a request
			e := znode.NewFrame()
			e.Int32(1)
			e.Int32(op)
			e.B = append(e.B, data...)
			_, _ = conn.Write(append(hello, e.Frame()...))
		}
		_ = conn.Close()
		if _, reply := other.roundTrip(OpExists, []byte("\x00\x00\x00\x01/\x00")); reply == "closed" {
			t.Fatal("another client has lost its connection")
		}
	})
}
