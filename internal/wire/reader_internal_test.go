package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
)

// frameOf returns a frame of n bytes, length included, that begins with tag.
func frameOf(tag byte, n int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(n-4))
	return append(b, bytes.Repeat([]byte{tag}, n-4)...)
}

// streamed is a connection that has such bytes to read, in pieces of a size.
type streamed struct {
	net.Conn
	rest []byte
	size int
}

func (c *streamed) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.rest[:min(c.size, len(c.rest))])
	c.rest = c.rest[n:]
	return n, nil
}
func (c *streamed) Close() error { return nil }

// framesOf returns the frames in a stream, and what ends them.
func framesOf(stream []byte, size int) (all [][]byte, err error) {
	w := New(&streamed{rest: stream, size: size}, Config{})
	for {
		f, err := w.frame()
		if err != nil {
			return all, err
		}
		all = append(all, bytes.Clone(f))
	}
}

// TestFrames reads the same frames, in whatever pieces the stream comes.
func TestFrames(t *testing.T) {
	var stream []byte
	var want [][]byte
	for i, n := range []int{4 + codec.ReplyHeader, 200, readBuffer - 1, 4 + codec.ReplyHeader, readBuffer + 5, 3*readBuffer + 1, 20} {
		f := frameOf(byte(i+1), n)
		stream = append(stream, f...)
		want = append(want, f[4:])
	}
	for _, size := range []int{1, 3, 7, 100, readBuffer, len(stream)} {
		got, err := framesOf(stream, size)
		if diff := cmp.Diff(want, got); diff != "" || err != io.EOF {
			t.Fatalf("pieces of %d bytes (-want +got): %v\n%s", size, err, diff)
		}
	}
	if got, err := framesOf(stream[:len(stream)-1], 100); len(got) != len(want)-1 || err != io.ErrUnexpectedEOF {
		t.Errorf("cut short: %d frames, %v", len(got), err)
	}
}

// FuzzFrames checks that the pieces do not matter, and that what a server sends causes no panic, also with calls in flight.
func FuzzFrames(f *testing.F) {
	f.Add(frameOf(1, 50), 3)
	f.Add([]byte{0, 0, 0, 1, 2}, 1)
	for _, n := range []int64{-1, -1 << 31, 0, 1, codec.ReplyHeader - 1, codec.MaxFrame + 1, 1<<31 - 1} {
		f.Add(append(frameOf(1, 50), binary.BigEndian.AppendUint32(nil, uint32(n))...), 100)
	}
	f.Add(slices.Concat(eventFrame(1, "/a"), replyFrame(1, 0, bodies[codec.OpGetChildren2]...), replyFrame(2, 0, bodies[codec.OpMulti]...)), 7)
	f.Add(replyFrame(codec.XidAuth, 0), 7)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		a, errA := framesOf(stream, len(stream)+1)
		b, errB := framesOf(stream, min(max(size, 1), 1<<20))
		if !cmp.Equal(a, b) || !errors.Is(errA, errB) && errA.Error() != errB.Error() {
			t.Fatalf("whole: %x %v; in pieces: %x %v", a, errA, b, errB)
		}
		first, second := newsOf(stream, len(stream)+1), newsOf(stream, min(max(size, 1), 1<<20))
		if first != second {
			t.Fatalf("whole: %s; in pieces: %s", first, second)
		}
	})
}

// newsOf returns what a stream says to a connection with a listing, a multi and a create in flight, and how these end.
func newsOf(stream []byte, size int) (said string) {
	b := newUnserved(&streamed{rest: stream, size: size})
	for i, op := range []int32{codec.OpGetChildren2, codec.OpMulti, codec.OpCreate} {
		c, _ := call(op, "/a")
		c.Done = func(r Reply) { r.Stat = nil; said += fmt.Sprintf("%d: %+v\n", i, r) }
		b.Start(c)
	}
	b.batch()
	for {
		n, err := b.Next()
		if err != nil {
			b.Forsake()
			return said + err.Error()
		}
		n.Proof, n.Since = clock.Answered{}, 0
		said += fmt.Sprintf("%d %q %v %v %q\n", n.Kind, n.Path, n.Accepted, n.Expired, n.Refused)
		n.End()
	}
}

// Greeted reports whether the handshake is over.
func (w *Conn) Greeted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open
}

// newUnserved is a connection behind its handshake without a writer.
func newUnserved(c net.Conn) *Conn {
	b := New(c, testConfig())
	b.open, b.timeout, b.ids = true, time.Second, twoIdentities
	b.link.Begin(clock.Now(), clock.Now(), time.Second, 250*time.Millisecond, false)
	b.beatAt = clock.Now().Add(time.Hour)
	return b
}

// TestLongFrameIsNotKept keeps no memory of a long frame.
func TestLongFrameIsNotKept(t *testing.T) {
	greeted(t, nil, func(t *testing.T, b *bench) {
		b.ask(codec.OpGetData, "/a")
		b.say(replyFrame(1, codec.CodeOK, append(sized(string(make([]byte, 16<<20))), aStat...)...))
		if n := b.told(); n.reply.Err != nil || len(n.reply.Data) != 16<<20 {
			t.Fatalf("%+v", n.reply.Err)
		}
		if n := cap(b.body); n > readBuffer {
			t.Errorf("%d bytes are kept", n)
		}
	})
}

// TestTooLong fails the read whose answer is longer than this client reads. Others are lost with the connection.
func TestTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for op, fails := range map[int32]bool{codec.OpGetChildren2: true, codec.OpGetData: true, codec.OpCreate: false} {
			b := newBench(t, nil)
			b.greet()
			long, reply := call(op, "/long")
			other, second := call(codec.OpGetData, "/other")
			b.Start(long, other)
			b.frames()
			b.say(binary.BigEndian.AppendUint32(nil, codec.MaxFrame+1))
			if err := b.ended(); !errors.Is(err, codec.ErrBadFrame) || !errors.Is(err, ErrTooLong) {
				t.Errorf("ended with %v", err)
			}
			if r := ended(reply); (r != nil && errors.Is(r.Err, ErrTooLong)) != fails {
				t.Errorf("%s ended with %+v", codec.OpName(op), r)
			}
			b.Forsake()
			if r := ended(second); r == nil || errors.Is(r.Err, ErrTooLong) || !errors.Is(r.Err, net.ErrClosed) {
				t.Errorf("the other call ended with %+v", r)
			}
		}
	})
}

// TestProofs believes an answer only if the leader alone can have given it, once, and from the time at which the request was
// sent.
func TestProofs(t *testing.T) {
	const nothing, leader, quorum = 0, 1, 2
	for _, c := range []struct {
		name     string
		op, code int32
		shows    int
		expires  bool
	}{
		{"create", codec.OpCreate, 0, quorum, false},
		{"delete of no node", codec.OpDelete, codec.CodeNoNode, quorum, false},
		{"sync", codec.OpSync, 0, leader, false},
		{"multi", codec.OpMulti, 0, quorum, false},
		{"delete without the right to: some followers say so themselves", codec.OpDelete, codec.CodeNoAuth, nothing, false},
		{"throttled", codec.OpSync, codec.CodeThrottled, nothing, false},
		{"expired", codec.OpSync, codec.CodeSessionExpired, nothing, true},
		{"a read", codec.OpGetData, 0, nothing, false},
		{"a read by an expired session", codec.OpGetData, codec.CodeSessionExpired, nothing, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			greeted(t, nil, func(t *testing.T, b *bench) {
				time.Sleep(500 * time.Millisecond)
				sent := clock.Now()
				b.ask(c.op, "/a")
				time.Sleep(10 * time.Millisecond)
				b.ask(codec.OpSync, "/b") // later, and not answered
				f := b.next()
				answer := replyFrame(codec.Xid(f), c.code)
				if c.code == codec.CodeOK {
					answer = answerTo(f)
				}
				b.say(answer)
				n := b.told()
				if n.ByLeader != (c.shows != nothing) || n.ByLeader && (!n.Proof.Sent.Equal(sent) || n.Proof.Quorum != (c.shows == quorum) || n.Since != 510*time.Millisecond) {
					t.Errorf("it proves %+v", n)
				}
				if n.Expired != c.expires {
					t.Errorf("expired: %v", n.Expired)
				}
				b.say(answer) // said twice
				if err := b.ended(); !errors.Is(err, codec.ErrBadFrame) || len(b.news) > 0 {
					t.Errorf("after an answer that was not due: %v, want %v", err, codec.ErrBadFrame)
				}
			})
		})
	}
}

// TestMalformedProvesNothing believes nothing of a malformed answer. Its transaction could be any number, and no server
// would take a session back that tells a number from the future.
func TestMalformedProvesNothing(t *testing.T) {
	multi := bodies[codec.OpMulti]
	lastHead := len(multi) - len(result(-1, 1))
	wrong := errors.New("it cannot be true")
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
		{"not plausible", codec.OpCreate, sized("/other"), false},
	} {
		for _, size := range []int{1, 30, 1000} {
			greeted(t, nil, func(t *testing.T, b *bench) {
				one, _ := call(c.op, "/a")
				one.Check = func(a *codec.Answer) error {
					if a.Path == "/other" {
						return wrong
					}
					return nil
				}
				b.Start(one)
				b.next()
				f := replyFrame(1, codec.CodeOK, c.body...)
				if c.name == "not yet whole" {
					f = f[:len(f)-1]
				}
				for piece := range slices.Chunk(f, size) {
					_, _ = b.server.Write(piece) // it fails when the connection has been cut
				}
				if got := len(b.proofs()) == 1 && b.cfg.Seen.Load() == testZxid; got != c.known {
					t.Errorf("%s, in pieces of %d bytes: believed %v, want %v", c.name, size, got, c.known)
				}
				if c.name == "not plausible" && !errors.Is(b.Err(), wrong) {
					t.Errorf("ended with %v", b.Err())
				}
			})
		}
	}
}

// TestOwnAnswersAreNotSeen tells servers of later connections only of transactions of which a caller can know.
func TestOwnAnswersAreNotSeen(t *testing.T) {
	greeted(t, func(c *Config) { c.Owned.Store(1) }, func(t *testing.T, b *bench) {
		b.say(answerTo(b.next())) // the write of the handshake
		if n := b.told(); !n.ByLeader || b.cfg.Seen.Load() != 0 {
			t.Errorf("seen %d after %+v", b.cfg.Seen.Load(), n)
		}
	})
}

// TestEvents gives events and answers in the order of the stream, also if they come in one piece.
func TestEvents(t *testing.T) {
	greeted(t, nil, func(t *testing.T, b *bench) {
		b.ask(codec.OpDelete, "/a")
		b.next()
		b.say(slices.Concat(eventFrame(codec.EventDeleted, "/a"), replyFrame(1, codec.CodeOK), eventFrame(codec.EventCreated, "/b")))
		for i, want := range []string{"2 /a", "0 ", "1 /b"} {
			if n := b.told(); fmt.Sprint(n.Kind, " ", n.Path) != want || n.ByLeader != (i == 1) {
				t.Errorf("news %d is %+v, want %s", i, n, want)
			}
		}
	})
}

// TestOrder takes answers in the order of requests only, except refusals that a server may give early.
func TestOrder(t *testing.T) {
	now := time.Now()
	flight := func(ops ...int32) *Conn {
		w := newUnserved(&streamed{})
		for i, op := range ops {
			now = now.Add(1)
			w.flight = append(w.flight, sending{Sending: clock.Sending{Xid: int32(i + 1), Op: op, At: now}})
		}
		return w
	}
	for _, c := range []struct {
		op, code int32
		early    bool
	}{
		{codec.OpCreate, codec.CodeNoAuth, true},
		{codec.OpCreate, codec.CodeInvalidACL, true},
		{codec.OpCreate2, codec.CodeNoAuth, true},
		{codec.OpDelete, codec.CodeNoAuth, true},
		{codec.OpSetData, codec.CodeNoAuth, true},
		{codec.OpSetACL, codec.CodeInvalidACL, true},
		{codec.OpCreate, codec.CodeOK, false},
		{codec.OpDelete, codec.CodeNoNode, false},
		{codec.OpMulti, codec.CodeNoAuth, false},
		{codec.OpCreateContainer, codec.CodeNoAuth, false},
		{codec.OpGetData, codec.CodeNoAuth, false},
		{codec.OpSync, codec.CodeInvalidACL, false},
		{codec.OpCreateContainer, codec.CodeUnimplemented, true},
		{codec.OpCreateTTL, codec.CodeUnimplemented, true},
		{codec.OpCreate, codec.CodeUnimplemented, false},
	} {
		w := flight(codec.OpCreate, c.op)
		i, s, err := w.find(2, c.code)
		if (err == nil) != c.early || err == nil && (i != 1 || s.Xid != 2) || err != nil && !errors.Is(err, codec.ErrBadFrame) {
			t.Errorf("op %d, code %d: %d, %v, want early: %v", c.op, c.code, i, err, c.early)
		}
		if i, _, err := w.find(1, codec.CodeOK); i != 0 || err != nil {
			t.Errorf("the first in flight: %d, %v", i, err)
		}
		if _, _, err := w.find(3, c.code); err == nil || !strings.Contains(err.Error(), "request 3, which is not due") {
			t.Errorf("one that is not in flight: %v", err)
		}
	}
	w := flight(codec.OpSync, codec.OpSync)
	w.flight[1].At = w.flight[0].At
	if i, _, err := w.find(2, codec.CodeOK); i != 1 || err != nil {
		t.Errorf("of two that were sent at the same instant: %d, %v", i, err)
	}
}

// TestIdentities says when a server has accepted all identities, or refused one.
func TestIdentities(t *testing.T) {
	greeted(t, func(c *Config) { c.Identities = twoIdentities }, func(t *testing.T, b *bench) {
		for _, c := range []struct {
			code     int32
			refused  string
			accepted bool
		}{{codec.CodeOK, "", false}, {codec.CodeAuthFailed, "x509", false}, {codec.CodeOK, "", true}} {
			b.say(replyFrame(codec.XidAuth, c.code))
			if n := b.told(); n.Refused != c.refused || n.Accepted != c.accepted || n.ByLeader {
				t.Errorf("after %d: %+v", c.code, n)
			}
		}
		b.say(replyFrame(codec.XidAuth, codec.CodeOK)) // nobody has asked
		if err := b.ended(); !errors.Is(err, codec.ErrBadFrame) {
			t.Errorf("ended with %v", err)
		}
	})
}
