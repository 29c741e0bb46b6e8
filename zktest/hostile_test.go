package zktest

import (
	"bytes"
	"context"
	"encoding/binary"
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

// FuzzDecoder checks that no bytes make the decoder of requests panic, or return more than there is.
func FuzzDecoder(f *testing.F) {
	g := newGenerator(1)
	for _, op := range append(append([]Op{}, common...), rare...) {
		body, _ := g.request(op)
		f.Add(body(0))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fresh := func() *znode.Decoder { return &znode.Decoder{Decoder: codec.Decoder{Rest: data}} }
		for op := range int32(codec.OpCreateTTL + 1) {
			if o := fresh().Operation(op); len(o.Path)+len(o.Data) > 4*len(data) {
				t.Errorf("%v: %d bytes of path and data out of %d", op, len(o.Path)+len(o.Data), len(data))
			}
		}
		for line, release := range znode.Releases {
			if all := fresh().Operations(&release); len(all) > len(data) {
				t.Errorf("%s: %d operations out of %d bytes", line, len(all), len(data))
			}
		}
		if all := fresh().Strings(); len(all) > len(data) {
			t.Errorf("%d strings out of %d bytes", len(all), len(data))
		}
		if all := fresh().ACL(); len(all) > len(data) {
			t.Errorf("%d entries out of %d bytes", len(all), len(data))
		}
		if len(data) >= 4 && binary.BigEndian.Uint32(data) == 0 && !fresh().Bool() && fresh().Buffer() == nil {
			t.Error("an empty buffer is not null")
		}
	})
}

// FuzzFrame checks that no bytes do more harm than to end a connection.
func FuzzFrame(f *testing.F) {
	f.Add(connectFrame(1, []byte("password"), 1000))
	f.Add(codec.CloseFrame(7))
	f.Add([]byte("\x00\x00\x00\x0f\x00\x00\x00\x01\x00\x00\x00\x03\x00\x00\x00\x03/ab"))
	f.Add([]byte("\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x00\x00\x03\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		frame, err := readFrame(bytes.NewReader(data))
		if err != nil {
			return
		}
		if len(frame) > len(data) || len(frame) < 4 {
			t.Errorf("a frame of %d bytes out of %d", len(frame), len(data))
		}
		parseConnect(frame)
		parseConnected(frame)
		parseRequest(frame)
		parseReply(frame)
	})
}
