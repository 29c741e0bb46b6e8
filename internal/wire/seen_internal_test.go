package wire

import (
	"bytes"
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/outbox"
)

// A malformed answer shows nothing. Its transaction could be any number, and no server would take a session back that
// tells a number from the future.
func TestMalformedShowsNothing(t *testing.T) {
	multi := bodies[codec.OpMulti]
	lastHead := len(multi) - resultHead
	for _, c := range []struct {
		name  string
		op    int32
		body  []byte
		known bool
	}{
		{"a stat", codec.OpSetData, aStat, true},
		{"too short", codec.OpSetData, aStat[1:], false},
		{"too long", codec.OpSetData, append(aStat, 0), false},
		{"a multi", codec.OpMulti, multi, true},
		{"malformed at its end", codec.OpMulti, slices.Concat(multi[:lastHead], result(codec.OpMulti, 0)), false},
		{"a multi that does not end", codec.OpMulti, multi[:lastHead], false},
		{"not yet whole", codec.OpMulti, multi, false},
	} {
		for _, size := range []int{1, 30, 1000} {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.greet(t)
				b.ask(c.op)
				f := replyFrame(1, codec.CodeOK, c.body...)
				if c.name == "not yet whole" {
					f = f[:len(f)-1]
				}
				for piece := range slices.Chunk(f, size) {
					_, _ = b.server.Write(piece) // it fails when the connection has been cut
				}
				synctest.Wait()
				seen, answers := b.cfg.Seen.Load() == 99, 0
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
		cfg := config(&fakeEvents{owns: true})
		for i, zxid := range []int64{0, 0, 99} {
			near, far := net.Pipe()
			w := New(near, cfg)
			over := make(chan error, 1)
			go func() { over <- w.Serve(codec.Hello{TimeoutMillis: 6000}) }()
			arrives := func(want []byte) {
				t.Helper()
				got, err := codec.ReadFrame(far, codec.MaxFrame)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("arrived (%v)\n%x, want\n%x", err, got, want)
				}
			}
			answer := func(frame []byte) {
				t.Helper()
				if _, err := far.Write(frame); err != nil {
					t.Error(err)
				}
			}
			arrives(codec.Hello{LastZxid: zxid, TimeoutMillis: 6000}.Frame())
			answer(greetingFrame(42, 6000))
			arrives(codec.AgreeFrame(firstXid - 1))
			answer(replyFrame(firstXid-1, codec.CodeNoNode))
			if i > 0 { // the first connection ends before
				w.Call(outbox.Call{Frame: callFrame(codec.OpSync, "/"), Done: func(outbox.Reply) {}})
				if _, err := codec.ReadFrame(far, codec.MaxFrame); err != nil {
					t.Error(err)
				}
				answer(replyFrame(1, codec.CodeNoNode))
				synctest.Wait()
			}
			w.Cut(net.ErrClosed)
			<-over
			w.Forsake()
			far.Close()
		}
	})
}
