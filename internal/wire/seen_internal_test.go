package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
)

// A malformed answer shows nothing. Its transaction could be any number, and no server would take a session back that
// tells a number from the future.
func TestMalformedShowsNothing(t *testing.T) {
	multi := bodies[OpMulti]
	lastHead := len(multi) - resultHead
	for _, c := range []struct {
		name  string
		op    int32
		body  []byte
		known bool
	}{
		{"a stat", OpSetData, aStat, true},
		{"too short", OpSetData, aStat[1:], false},
		{"too long", OpSetData, append(aStat, 0), false},
		{"a multi", OpMulti, multi, true},
		{"malformed at its end", OpMulti, slices.Concat(multi[:lastHead], result(OpMulti, 0)), false},
		{"not yet whole", OpMulti, multi, false},
	} {
		for _, size := range []int{1, 30, 1000} {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.greet(t)
				b.send(t, 7, c.op)
				f := replyFrame(7, CodeOK, c.body...)
				if c.name == "not yet whole" {
					f = f[:len(f)-1]
				}
				for piece := range slices.Chunk(f, size) {
					_, _ = b.server.Write(piece) // it fails when the connection has been cut
				}
				synctest.Wait()
				seen, answers := b.cfg.Seen.zxid.Load() == 99, 0
				b.events.do(func() { answers = len(b.events.answers) })
				if seen != c.known || (answers == 1) != c.known {
					t.Errorf("%s, in pieces of %d bytes: seen %v, %d answers, want them: %v", c.name, size, seen, answers, c.known)
				}
			})
		}
	}
}

// The last transaction in an answer to a request comes to the servers in the next handshake. An answer to a
// heartbeat does not count.
func TestSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := &fakeEvents{owns: true}
		cfg := config(events)
		hello := Hello{TimeoutMillis: 6000}.Frame()
		for i, zxid := range []uint64{0, 0, 99} {
			near, far := net.Pipe()
			w := New(near, cfg)
			go func() { _, _ = io.Copy(io.Discard, w) }()
			arrives := func(want []byte) {
				t.Helper()
				got := make([]byte, len(want))
				if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, want) {
					t.Errorf("arrived (%v)\n%x, want\n%x", err, got, want)
				}
			}
			answer := func(frame []byte) {
				t.Helper()
				if _, err := far.Write(frame); err != nil {
					t.Error(err)
				}
			}
			before, want := bytes.Clone(hello), bytes.Clone(hello)
			binary.BigEndian.PutUint64(want[8:], zxid)
			go func() { _, _ = w.Write(hello) }()
			arrives(want)
			synctest.Wait()
			if !bytes.Equal(hello, before) {
				t.Errorf("the caller's frame was changed to %x", hello)
			}
			answer(greetingFrame(42, 6000))
			arrives(agreeFrame(firstXid - 1))
			answer(replyFrame(firstXid-1, CodeNoNode))
			if i > 0 { // the first connection ends before
				e := NewFrame()
				e.Int32(0)
				e.Int32(OpSync)
				w.Call(e.Frame(), func(Reply) {})
				if _, err := ReadFrame(far, MaxFrame); err != nil {
					t.Error(err)
				}
				answer(replyFrame(firstXid-2, CodeNoNode))
				synctest.Wait()
			}
			w.Close()
			w.Forsake()
			far.Close()
			events.beats.Wait()
		}
	})
}
