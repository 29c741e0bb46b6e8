package wire

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeEvents stands for the session of a connection.
type fakeEvents struct {
	mu         sync.Mutex
	owns       bool
	refuse     error
	greetings  []Greeting
	hellos     []time.Time
	answers    []Answer
	identities []string
	expiries   int
	closes     int
	faults     []error
	beats      sync.WaitGroup
}

func (e *fakeEvents) do(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

func (e *fakeEvents) Greeted(g Greeting, sent time.Time) error {
	e.do(func() { e.greetings, e.hellos = append(e.greetings, g), append(e.hellos, sent) })
	return e.refuse
}
func (e *fakeEvents) Answered(a Answer) { e.do(func() { e.answers = append(e.answers, a) }) }
func (e *fakeEvents) Accepted()         { e.do(func() { e.identities = append(e.identities, "accepted") }) }
func (e *fakeEvents) Refused(s string) {
	e.do(func() { e.identities = append(e.identities, "refused "+s) })
}
func (e *fakeEvents) Expired()         { e.do(func() { e.expiries++ }) }
func (e *fakeEvents) Closed()          { e.do(func() { e.closes++ }) }
func (e *fakeEvents) Broken(err error) { e.do(func() { e.faults = append(e.faults, err) }) }
func (e *fakeEvents) Owns() bool       { e.mu.Lock(); defer e.mu.Unlock(); return e.owns }
func (e *fakeEvents) Go(f func())      { e.beats.Go(f) }

func config(e Events) Config {
	return Config{
		Events: e, Clock: NewClock(Now()), Seen: new(Seen), Refusals: new(Refusals), HandshakeLimit: time.Second,
		Half: func(timeout time.Duration) time.Duration { return timeout / 4 },
	}
}

// bench is a connection with a scripted server at its other end. It lives in a synctest
// bubble, so that its limits take no time and send times are exact.
type bench struct {
	*Conn
	events *fakeEvents
	server net.Conn
	got    chan [2]int32 // xid and op of each frame after the handshake
	reads  chan error    // the end of the reader
}

func newBench(t *testing.T) *bench {
	t.Helper()
	near, far := net.Pipe()
	b := &bench{events: &fakeEvents{}, server: far, got: make(chan [2]int32, 1000), reads: make(chan error, 1)}
	b.Conn = New(near, config(b.events))
	t.Cleanup(func() { b.Close(); far.Close(); b.events.beats.Wait() })
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
	f := binary.BigEndian.AppendUint32(nil, 16)
	f = binary.BigEndian.AppendUint32(f, uint32(xid))
	f = binary.BigEndian.AppendUint32(f, uint32(op))
	f = binary.BigEndian.AppendUint64(f, 0)
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

// arrived returns the xids that reached the server since the last call, heartbeats left out.
func (b *bench) arrived() []int32 {
	synctest.Wait()
	var xids []int32
	for len(b.got) > 0 {
		if xid := (<-b.got)[0]; xid > firstXid {
			xids = append(xids, xid)
		}
	}
	return xids
}

// beaten returns the operations of the heartbeats that reached the server since the last call.
func (b *bench) beaten() []int32 {
	synctest.Wait()
	var ops []int32
	for len(b.got) > 0 {
		if f := <-b.got; f[0] <= firstXid || f[0] == XidPing {
			ops = append(ops, f[1])
		}
	}
	return ops
}

// An answer counts only if the leader alone can have given it, and it counts from the time when
// that request was sent.
func TestConnAnswers(t *testing.T) {
	for _, c := range []struct {
		name      string
		op, code  int32
		shows     evidence
		expiries  int
		answerXid int32 // 0: the request's
	}{
		{"create", OpCreate, 0, evidenceQuorum, 0, 0},
		{"delete of no node", OpDelete, CodeNoNode, evidenceQuorum, 0, 0},
		{"sync", OpSync, 0, evidenceLeader, 0, 0},
		{"multi", OpMulti, 0, evidenceQuorum, 0, 0},
		{"delete without the right to: some followers say so themselves", OpDelete, CodeNoAuth, evidenceNone, 0, 0},
		{"throttled", OpSync, CodeThrottled, evidenceNone, 0, 0},
		{"expired", OpSync, CodeSessionExpired, evidenceNone, 1, 0},
		{"a read", OpGetData, 0, evidenceNone, 0, 0},
		{"a read by an expired session", OpGetData, CodeSessionExpired, evidenceNone, 1, 0},
		{"an event", OpSync, 0, evidenceNone, 0, XidEvent},
		{"another's reply", OpSync, 0, evidenceNone, 0, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.greet(t)
				time.Sleep(500 * time.Millisecond)
				sent := time.Now()
				xid := int32(7)
				b.send(t, xid, c.op)
				time.Sleep(300 * time.Millisecond)
				b.send(t, 9, OpSync) // later, and not answered
				if c.answerXid != 0 {
					xid = c.answerXid
				}
				answer := replyFrame(xid, c.code, bodies[c.op]...)
				if xid == XidEvent {
					answer = replyFrame(xid, 0, numbers(EventCreated, 3, 1, '/'<<24)...)
				}
				b.answer(t, answer)
				got := b.events.answers
				if want := c.shows != evidenceNone; want && (len(got) != 1 || !got[0].Sent.Equal(sent)) || !want && len(got) != 0 {
					t.Errorf("%v counts, want %v: %v", got, want, sent)
				}
				if len(got) == 1 && got[0].Quorum != (c.shows == evidenceQuorum) {
					t.Errorf("quorum: %v", got[0].Quorum)
				}
				if b.events.expiries != c.expiries {
					t.Errorf("%d expiries, want %d", b.events.expiries, c.expiries)
				}
				if xid == XidEvent {
					return
				}
				if xid != 8 {
					if len(b.events.faults) > 0 {
						t.Fatalf("refused: %v", b.events.faults)
					}
					b.answer(t, answer) // said twice, it counts once
				}
				if len(b.events.answers) > 1 {
					t.Error("a second reply to the same request was counted")
				}
				if err := <-b.reads; !errors.Is(err, ErrBadFrame) {
					t.Errorf("after an answer that was not due: %v, want %v", err, ErrBadFrame)
				}
			})
		})
	}
}

func TestConnGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		hello := time.Now()
		b.send(t, 0, 0)
		<-b.got
		time.Sleep(100 * time.Millisecond)
		go b.read()
		b.answer(t, greetingFrame(42, 6000))
		if len(b.events.greetings) != 1 || b.events.greetings[0].Session != 42 || !b.events.hellos[0].Equal(hello) {
			t.Errorf("greeted with %+v, sent %v ago", b.events.greetings, time.Since(b.events.hellos[0]))
		}
		b.send(t, 5, OpClose)
		b.answer(t, replyFrame(5, 0))
		if b.events.closes != 1 {
			t.Error("the answer to closeSession was not seen")
		}
	})
}

// Greetings that end the connection before zk.Conn sees them. zk.Conn must see the greeting of an
// expired session.
func TestConnGreetingRefused(t *testing.T) {
	for _, c := range []struct {
		name     string
		frame    []byte
		refuse   error
		fails    error
		expiries int
	}{
		{"another session", greetingFrame(43, 6000), ErrReplaced, ErrReplaced, 0},
		{"malformed", frameOf(0xff, 60), nil, ErrBadFrame, 0},
		{"of impossible length", []byte{0x7f, 0xff, 0xff, 0xff}, nil, ErrBadFrame, 0},
		{"expired", greetingFrame(0, 0), nil, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
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

// A server that does not greet is given up after the limit, and the reader gets the reason. A
// greeted connection has no limit of its own, whatever deadlines zk.Conn sets. Silence says how
// long an answer has been due.
func TestConnSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.send(t, 0, 0)
		go b.read()
		start := time.Now()
		if err := <-b.reads; !errors.Is(err, ErrSilent) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if len(b.events.faults) != 1 {
			t.Errorf("told of %v", b.events.faults)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.greet(t)
		_ = b.SetReadDeadline(time.Now().Add(time.Second))
		_ = b.SetDeadline(time.Now().Add(time.Second))
		if d, _ := b.Silence(time.Now().Add(900 * time.Millisecond)); d != 0 {
			t.Errorf("silent for %v with nothing in flight", d)
		}
		b.send(t, 1, OpSync)
		time.Sleep(time.Minute)
		if d, _ := b.Silence(time.Now()); d != time.Minute {
			t.Errorf("silent for %v after a minute", d)
		}
		event := replyFrame(XidEvent, 0, numbers(EventCreated, 3, 0)...)
		b.answer(t, event[:2])
		if bytes, frame := b.Silence(time.Now()); bytes != 0 || frame != time.Minute {
			t.Errorf("no bytes for %v, no frame for %v after two bytes", bytes, frame)
		}
		b.answer(t, event[2:])
		if bytes, frame := b.Silence(time.Now()); bytes != 0 || frame != 0 {
			t.Errorf("no bytes for %v, no frame for %v after an event", bytes, frame)
		}
		select {
		case err := <-b.reads:
			t.Errorf("given up: %v", err)
		default:
		}
	})
}

// A write that fails reports success, and the reader gets the error.
func TestConnWriteNeverFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.greet(t)
		b.server.Close()
		b.send(t, 1, OpSync)
		if <-b.reads == nil {
			t.Error("the reader was not told")
		}
		b.send(t, 2, OpSync)
	})
	synctest.Test(t, func(t *testing.T) { // nobody reads at the other end
		near, far := net.Pipe()
		defer far.Close()
		w := New(near, config(&fakeEvents{}))
		b := &bench{Conn: w}
		start := time.Now()
		b.send(t, 0, 0)
		if d := time.Since(start); d != time.Second {
			t.Errorf("gave up after %v, want a second", d)
		}
		if _, err := w.Read(make([]byte, 1)); err == nil {
			t.Error("the reader was not told")
		}
	})
}
