package session

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeEvents stands for the session of a wire.
type fakeEvents struct {
	mu        sync.Mutex
	armed     bool
	refuse    error
	greetings []greeting
	confirms  []time.Time
	proofs    []proof // of those after the greeting
	expiries  int
	closes    int
	faults    []error
}

func (e *fakeEvents) greeted(g greeting, sent time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.greetings = append(e.greetings, g)
	e.confirms = append(e.confirms, sent)
	return e.refuse
}
func (e *fakeEvents) confirmed(sent time.Time, p proof) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.proofs = append(e.proofs, p)
	e.confirms = append(e.confirms, sent)
}
func (e *fakeEvents) expired()           { e.mu.Lock(); e.expiries++; e.mu.Unlock() }
func (e *fakeEvents) sessionClosed()     { e.mu.Lock(); e.closes++; e.mu.Unlock() }
func (e *fakeEvents) broken(err error)   { e.mu.Lock(); e.faults = append(e.faults, err); e.mu.Unlock() }
func (e *fakeEvents) watchesArmed() bool { return e.armed }
func (e *fakeEvents) watchesRefused()    {}

// bench is a wire with a scripted server at its other end. It lives in a synctest
// bubble, so that its deadlines take no time and send times are exact.
type bench struct {
	*wire
	events *fakeEvents
	server net.Conn
	got    chan [2]int32 // xid and op of each frame after the handshake
	reads  chan error    // the end of the reader
}

func newBench(t *testing.T, armed bool) *bench {
	t.Helper()
	near, far := net.Pipe()
	b := &bench{events: &fakeEvents{armed: armed}, server: far, got: make(chan [2]int32, 100), reads: make(chan error, 1)}
	b.wire = newWire(near, b.events, time.Second, func() time.Duration { return 3 * time.Second })
	t.Cleanup(func() { near.Close(); far.Close() })
	go b.serve()
	return b
}

func (b *bench) serve() {
	for {
		head := make([]byte, 4)
		if _, err := io.ReadFull(b.server, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(b.server, body); err != nil {
			return
		}
		b.got <- [2]int32{int32(binary.BigEndian.Uint32(body)), int32(binary.BigEndian.Uint32(body[4:]))}
	}
}

// read drains the wire as zk.Conn does.
func (b *bench) read() {
	buf := make([]byte, 64)
	for {
		if _, err := b.Read(buf); err != nil {
			b.reads <- err
			return
		}
	}
}

// greet makes the handshake.
func (b *bench) greet(t *testing.T) {
	t.Helper()
	b.send(t, 0, 0)
	<-b.got
	go b.read()
	b.answer(t, greetingFrame(42, 6000))
}

func (b *bench) send(t *testing.T, xid, op int32) {
	t.Helper()
	f := binary.BigEndian.AppendUint32(nil, 8)
	f = binary.BigEndian.AppendUint32(f, uint32(xid))
	f = binary.BigEndian.AppendUint32(f, uint32(op))
	if n, err := b.Write(f); n != len(f) || err != nil {
		t.Errorf("write: %d, %v: a write never fails", n, err)
	}
}

func (b *bench) answer(t *testing.T, frame []byte) {
	t.Helper()
	if _, err := b.server.Write(frame); err != nil {
		t.Errorf("the server's write: %v", err)
	}
	synctest.Wait()
}

func replyFrame(xid, code int32, body ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(replyHeader+len(body)))
	b = binary.BigEndian.AppendUint32(b, uint32(xid))
	b = binary.BigEndian.AppendUint64(b, 99)
	return append(binary.BigEndian.AppendUint32(b, uint32(code)), body...)
}

// arrived returns the xids that reached the server since the last call.
func (b *bench) arrived() []int32 {
	synctest.Wait()
	var xids []int32
	for len(b.got) > 0 {
		xids = append(xids, (<-b.got)[0])
	}
	return xids
}

// Only what the leader alone can have answered moves the clock, and it moves it to
// the send time of that very request.
func TestWireConfirms(t *testing.T) {
	for _, c := range []struct {
		name      string
		op, code  int32
		confirms  bool
		expiries  int
		answerXid int32 // 0: the request's
	}{
		{"create", opCreate, 0, true, 0, 0},
		{"createContainer", opCreateContainer, 0, true, 0, 0},
		{"createTTL", opCreateTTL, 0, true, 0, 0},
		{"delete", opDelete, 0, true, 0, 0},
		{"delete of no node", opDelete, codeNoNode, true, 0, 0},
		{"setData", opSetData, 0, true, 0, 0},
		{"sync", opSync, 0, true, 0, 0},
		{"multi", opMulti, 0, true, 0, 0},
		{"delete without the right to: some followers say so themselves", opDelete, codeNoAuth, false, 0, 0},
		{"throttled", opSync, codeThrottled, false, 0, 0},
		{"session moved", opSync, -118, false, 0, 0},
		{"expired", opSync, codeSessionExpired, false, 1, 0},
		{"a read", opGetData, 0, false, 0, 0},
		{"exists", opExists, 0, false, 0, 0},
		{"children", opGetChildren, 0, false, 0, 0},
		{"a read by an expired session", opGetData, codeSessionExpired, false, 1, 0},
		{"a ping", opPing, 0, false, 0, xidPing},
		{"an event", opSync, 0, false, 0, xidEvent},
		{"another's reply", opSync, 0, false, 0, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, false)
				b.greet(t)
				time.Sleep(time.Second)
				sent := time.Now()
				b.send(t, 7, c.op)
				time.Sleep(time.Second)
				b.send(t, 9, opSync) // later, and not answered
				xid := c.answerXid
				if xid == 0 {
					xid = 7
				}
				answer := replyFrame(xid, c.code, bodies[c.op]...)
				if xid == xidEvent {
					answer = replyFrame(xid, 0, numbers(eventCreated, 3, 1, '/'<<24)...)
				}
				b.answer(t, answer)
				got := b.events.confirms[1:] // after the greeting
				if want := c.confirms; want && (len(got) != 1 || !got[0].Equal(sent)) || !want && len(got) != 0 {
					t.Errorf("confirmed %v, want %v: %v", got, want, sent)
				}
				if want := map[bool]proof{true: proofLeader, false: proofQuorum}[c.op == opSync]; c.confirms && b.events.proofs[0] != want {
					t.Errorf("proof %v, want %v", b.events.proofs, want)
				}
				if b.events.expiries != c.expiries {
					t.Errorf("%d expiries, want %d", b.events.expiries, c.expiries)
				}
				if xid < 0 {
					return
				}
				if c.answerXid == 0 {
					if len(b.events.faults) > 0 {
						t.Fatalf("refused: %v", b.events.faults)
					}
					b.answer(t, answer) // said twice, it counts once
				}
				if len(b.events.confirms) > 2 {
					t.Error("a second reply to the same request was counted")
				}
				if err := <-b.reads; !errors.Is(err, errBadFrame) {
					t.Errorf("after an answer that was not due: %v, want %v", err, errBadFrame)
				}
			})
		})
	}
}

func TestWireGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, false)
		hello := time.Now()
		b.send(t, 0, 0)
		<-b.got
		time.Sleep(100 * time.Millisecond)
		go b.read()
		b.answer(t, greetingFrame(42, 6000))
		if len(b.events.greetings) != 1 || b.events.greetings[0].session != 42 || !b.events.confirms[0].Equal(hello) {
			t.Errorf("greeted with %+v, sent %v ago", b.events.greetings, time.Since(b.events.confirms[0]))
		}
		b.send(t, 5, opClose)
		b.answer(t, replyFrame(5, 0))
		if b.events.closes != 1 {
			t.Error("the answer to closeSession was not seen")
		}
	})
}

// Greetings that break the connection off, before zk.Conn sees them; one of an
// expired session it is to see.
func TestWireGreetingRefused(t *testing.T) {
	for _, c := range []struct {
		name     string
		frame    []byte
		refuse   error
		fails    error
		expiries int
	}{
		{"another session", greetingFrame(43, 6000), errReplaced, errReplaced, 0},
		{"malformed", frameOf(0xff, 60), nil, errBadFrame, 0},
		{"of impossible length", []byte{0x7f, 0xff, 0xff, 0xff}, nil, errBadFrame, 0},
		{"expired", greetingFrame(0, 0), nil, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, false)
				b.events.refuse = c.refuse
				b.send(t, 0, 0)
				go func() { _, _ = b.server.Write(c.frame) }()
				n, err := b.Read(make([]byte, 64))
				if !errors.Is(err, c.fails) || c.fails != nil && n != 0 || c.fails == nil && n == 0 {
					t.Errorf("read %d bytes, %v, want %v", n, err, c.fails)
				}
				if b.events.expiries != c.expiries {
					t.Errorf("%d expiries, want %d", b.events.expiries, c.expiries)
				}
			})
		})
	}
}

// After a reconnect with watches requests wait for setWatches.
func TestWireHolding(t *testing.T) {
	type frame struct{ xid, op int32 }
	for _, c := range []struct {
		name  string
		armed bool
		sends []frame
		want  [][]int32 // what has arrived after each send
	}{
		{"no watches", false, []frame{{1, opCreate}, {2, opSync}}, [][]int32{{1}, {2}}},
		{"until setWatches", true,
			[]frame{{1, opCreate}, {3, opSync}, {4, opSetWatches}, {5, opSync}},
			[][]int32{nil, nil, {4, 1, 3}, {5}}},
		{"until a ping", true,
			[]frame{{1, opCreate}, {2, opSync}, {xidPing, opPing}, {3, opSync}},
			[][]int32{nil, nil, {1, 2, xidPing}, {3}}},
		{"closeSession too: zk.Conn is still about to read what its answer changes", true,
			[]frame{{1, opDelete}, {2, opClose}, {3, opSetWatches}}, [][]int32{nil, nil, {3, 1, 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.armed)
				b.greet(t)
				for i, f := range c.sends {
					b.send(t, f.xid, f.op)
					if diff := cmp.Diff(c.want[i], b.arrived()); diff != "" {
						t.Errorf("after frame %d (-want +got):\n%s", i, diff)
					}
				}
			})
		})
	}
}

// What is held back counts from when it is sent, and its bytes are those of the
// call: zk.Conn uses its buffer again at once.
func TestWireHeldIsCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, true)
		b.greet(t)
		f := []byte{0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0, opSync}
		_, _ = b.Write(f)
		f[7] = 99
		time.Sleep(time.Second)
		sent := time.Now()
		b.send(t, 8, opSetWatches)
		if diff := cmp.Diff([]int32{8, 7}, b.arrived()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		b.answer(t, replyFrame(8, 0))
		b.answer(t, replyFrame(7, 0, bodies[opCreate]...))
		if got := b.events.confirms[1:]; len(got) != 1 || !got[0].Equal(sent) {
			t.Errorf("confirmed %v, want %v", got, sent)
		}
	})
}

// A silent server makes Read fail, whatever deadlines zk.Conn sets.
func TestWireSilence(t *testing.T) {
	for _, greeted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, false)
			want := time.Second
			if greeted {
				b.greet(t)
				want = 3 * time.Second
			} else {
				b.send(t, 0, 0)
				go b.read()
			}
			start := time.Now()
			_ = b.SetReadDeadline(start.Add(time.Hour))
			_ = b.SetDeadline(time.Time{})
			err := <-b.reads
			var timeout net.Error
			if !errors.As(err, &timeout) || !timeout.Timeout() || time.Since(start) < want || time.Since(start) > want+want/8 {
				t.Errorf("greeted %v: %v after %v, want a timeout after %v and an eighth at most", greeted, err, time.Since(start), want)
			}
		})
	}
}

// A write that fails is reported as success, and surfaces to the reader.
func TestWireWriteNeverFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, false)
		b.greet(t)
		b.server.Close()
		b.send(t, 1, opSync)
		if <-b.reads == nil {
			t.Error("the reader was not told")
		}
		b.send(t, 2, opSync)
	})
	synctest.Test(t, func(t *testing.T) { // nobody reads at the other end
		near, far := net.Pipe()
		defer far.Close()
		w := newWire(near, &fakeEvents{}, time.Second, nil)
		b := &bench{wire: w}
		start := time.Now()
		b.send(t, 0, 0)
		if d := time.Since(start); d < time.Second || d > 9*time.Second/8 {
			t.Errorf("gave up after %v, want a second and an eighth at most", d)
		}
		if _, err := w.Read(make([]byte, 1)); err == nil {
			t.Error("the reader was not told")
		}
	})
}
