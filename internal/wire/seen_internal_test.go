package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
)

// Wherever the pieces of a stream are cut, zk.Conn gets all bytes but the transactions of replies.
func TestHideZxid(t *testing.T) {
	greeting := greetingFrame(42, 6000)
	reply, event := replyFrame(7, CodeNoNode, 1, 2, 3), replyFrame(XidEvent, 0)
	for _, size := range []int{1, 2, 3, 5, 7, 9, 11, 13, 17, 1000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			got := slices.Concat(greeting, reply, event, reply)
			want := bytes.Clone(got)
			for at := len(greeting); at < len(want); at += 4 + int(binary.BigEndian.Uint32(want[at:])) {
				clear(want[at+8 : at+16])
			}
			var f frames
			for piece := range slices.Chunk(got, size) {
				if err := f.feed(piece, func([]byte) ([]field, error) { f.replies = true; return nil, nil }, func() {}); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%x, want\n%x", got, want)
			}
		})
	}
}

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
				b := newBench(t, false)
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

// The last transaction in an answer to zk.Conn comes to the servers in the next handshake and in each setWatches that follows.
// An answer on that connection does not change what it tells: the second setWatches comes after the answer to the
// first. An answer to a heartbeat never counts, since it can come before setWatches is sent.
func TestSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := &fakeEvents{armed: true, owns: true}
		cfg := config(events)
		hello, setWatches := Hello{TimeoutMillis: 6000}.Frame(), NewFrame()
		setWatches.Int32(2)
		setWatches.Int32(OpSetWatches)
		setWatches.Int64(0)
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
			sends := func(frame []byte, offset int) {
				t.Helper()
				before, want := bytes.Clone(frame), bytes.Clone(frame)
				binary.BigEndian.PutUint64(want[offset:], zxid)
				go func() { _, _ = w.Write(frame) }()
				arrives(want)
				synctest.Wait()
				if !bytes.Equal(frame, before) {
					t.Errorf("the caller's frame was changed to %x", frame)
				}
			}
			answer := func(frame []byte) {
				t.Helper()
				if _, err := far.Write(frame); err != nil {
					t.Error(err)
				}
			}
			sends(hello, 8)
			answer(greetingFrame(42, 6000))
			arrives(agreeFrame(firstXid - 1))
			answer(replyFrame(firstXid-1, CodeNoNode))
			for range min(2*i, 2) { // the first connection ends before
				sends(setWatches.Frame(), 12)
				answer(replyFrame(2, CodeOK))
				synctest.Wait()
			}
			w.Close()
			far.Close()
			events.beats.Wait()
		}
	})
}
