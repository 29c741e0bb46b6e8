package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/outbox"
)

// fakeEvents stands for the session of a connection.
type fakeEvents struct {
	mu         sync.Mutex
	owns       bool
	refuse     error
	greetings  []codec.Greeting
	hellos     []time.Time
	answers    []clock.Answered
	identities []string
	fired      []string
	expiries   int
	closes     int
}

func (e *fakeEvents) do(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

func (e *fakeEvents) Greeted(g codec.Greeting, sent time.Time) error {
	e.do(func() { e.greetings, e.hellos = append(e.greetings, g), append(e.hellos, sent) })
	return e.refuse
}
func (e *fakeEvents) Answered(a clock.Answered, _ int64, _ time.Duration) {
	e.do(func() { e.answers = append(e.answers, a) })
}
func (e *fakeEvents) Accepted() {
	e.do(func() { e.identities = append(e.identities, "accepted") })
}
func (e *fakeEvents) Ready() {}
func (e *fakeEvents) Refused(s string, why error) {
	if why != nil {
		s += ": " + why.Error()
	}
	e.do(func() { e.identities = append(e.identities, "refused "+s) })
}
func (e *fakeEvents) Fired(kind int32, path string) {
	e.do(func() { e.fired = append(e.fired, fmt.Sprint(kind, " ", path)) })
}
func (e *fakeEvents) Expired()   { e.do(func() { e.expiries++ }) }
func (e *fakeEvents) Closed()    { e.do(func() { e.closes++ }) }
func (e *fakeEvents) Owns() bool { e.mu.Lock(); defer e.mu.Unlock(); return e.owns }

func config(e Events) Config {
	return Config{
		Events: e, Clock: clock.New(clock.Now()), Seen: new(atomic.Int64), HandshakeLimit: time.Second,
		Outbox: outbox.Config{Refusals: new(outbox.Refusals), Batches: new(atomic.Int64), Window: new(atomic.Int32)},
		Half:   func(timeout time.Duration) time.Duration { return timeout / 4 },
	}
}

// bench is a connection with a scripted server at its other end. It lives in a synctest
// bubble, so that its limits take no time and send times are exact.
type bench struct {
	*Conn
	events *fakeEvents
	server net.Conn
	got    chan [2]int32 // xid and op of each frame after the handshake
	over   chan error    // what Serve has returned
}

func newBench(t *testing.T, identities ...codec.Identity) *bench {
	t.Helper()
	near, far := net.Pipe()
	b := &bench{events: &fakeEvents{}, server: far, got: make(chan [2]int32, 1000), over: make(chan error, 1)}
	cfg := config(b.events)
	cfg.Identities = identities
	b.Conn = New(near, cfg)
	t.Cleanup(func() { b.Cut(net.ErrClosed); far.Close() })
	return b
}

// start begins to serve, and takes the handshake.
func (b *bench) start(t *testing.T) {
	t.Helper()
	go func() { b.over <- b.Serve(codec.Hello{TimeoutMillis: 6000}) }()
	if _, err := codec.ReadFrame(b.server, codec.MaxFrame); err != nil {
		t.Fatal(err)
	}
	go b.listen()
}

// listen takes what arrives at the server.
func (b *bench) listen() {
	for {
		f, err := codec.ReadFrame(b.server, codec.MaxFrame)
		if err != nil {
			return
		}
		b.got <- [2]int32{codec.Xid(f), codec.Op(f)}
	}
}

// greet makes the handshake.
func (b *bench) greet(t *testing.T) {
	t.Helper()
	b.start(t)
	b.answer(t, greetingFrame(42, 6000))
}

// ask sends a request to whose answer nobody listens.
func (b *bench) ask(op int32) {
	b.Call(outbox.Call{Frame: callFrame(op, "/a"), Done: func(outbox.Reply) {}})
	synctest.Wait()
}

func (b *bench) answer(t *testing.T, frame []byte) {
	t.Helper()
	if _, err := b.server.Write(frame); err != nil {
		t.Errorf("the server's write: %v", err)
	}
	synctest.Wait()
}

func replyFrame(xid, code int32, body ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(codec.ReplyHeader+len(body)))
	b = binary.BigEndian.AppendUint32(b, uint32(xid))
	b = binary.BigEndian.AppendUint64(b, 99)
	return append(binary.BigEndian.AppendUint32(b, uint32(code)), body...)
}

func eventFrame(kind int32, path string) []byte {
	return replyFrame(codec.XidEvent, 0, append(numbers(kind, 3), sized(path)...)...)
}

// beaten returns the operations of the heartbeats that reached the server since the last call.
func (b *bench) beaten() []int32 {
	synctest.Wait()
	var ops []int32
	for len(b.got) > 0 {
		if f := <-b.got; f[0] <= firstXid || f[0] == codec.XidPing {
			ops = append(ops, f[1])
		}
	}
	return ops
}

const (
	showsNone = iota
	showsLeader
	showsQuorum
)

// An answer counts only if the leader alone can have given it, and it counts from the time when
// that request was sent.
func TestConnAnswers(t *testing.T) {
	for _, c := range []struct {
		name      string
		op, code  int32
		shows     int
		expiries  int
		answerXid int32 // 0: the request's
	}{
		{"create", codec.OpCreate, 0, showsQuorum, 0, 0},
		{"delete of no node", codec.OpDelete, codec.CodeNoNode, showsQuorum, 0, 0},
		{"sync", codec.OpSync, 0, showsLeader, 0, 0},
		{"multi", codec.OpMulti, 0, showsQuorum, 0, 0},
		{"delete without the right to: some followers say so themselves", codec.OpDelete, codec.CodeNoAuth, showsNone, 0, 0},
		{"throttled", codec.OpSync, codec.CodeThrottled, showsNone, 0, 0},
		{"expired", codec.OpSync, codec.CodeSessionExpired, showsNone, 1, 0},
		{"a read", codec.OpGetData, 0, showsNone, 0, 0},
		{"a read by an expired session", codec.OpGetData, codec.CodeSessionExpired, showsNone, 1, 0},
		{"an event", codec.OpSync, 0, showsNone, 0, codec.XidEvent},
		{"another's reply", codec.OpSync, 0, showsNone, 0, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.greet(t)
				time.Sleep(500 * time.Millisecond)
				sent := time.Now()
				xid := int32(1)
				b.ask(c.op)
				time.Sleep(10 * time.Millisecond)
				b.ask(codec.OpSync) // later, and not answered
				if c.answerXid != 0 {
					xid = c.answerXid
				}
				answer := replyFrame(xid, c.code, bodies[c.op]...)
				if c.code != codec.CodeOK {
					answer = replyFrame(xid, c.code)
				}
				if xid == codec.XidEvent {
					answer = eventFrame(codec.EventCreated, "/")
				}
				b.answer(t, answer)
				got := b.events.answers
				if want := c.shows != showsNone; want && (len(got) != 1 || !got[0].Sent.Equal(sent)) || !want && len(got) != 0 {
					t.Errorf("%v counts, want %v: %v", got, want, sent)
				}
				if len(got) == 1 && got[0].Quorum != (c.shows == showsQuorum) {
					t.Errorf("quorum: %v", got[0].Quorum)
				}
				if b.events.expiries != c.expiries {
					t.Errorf("%d expiries, want %d", b.events.expiries, c.expiries)
				}
				if xid == codec.XidEvent {
					return
				}
				if xid != 8 {
					if err := b.Err(); err != nil {
						t.Fatalf("refused: %v", err)
					}
					b.answer(t, answer) // said twice, it counts once
				}
				if len(b.events.answers) > 1 {
					t.Error("a second reply to the same request was counted")
				}
				if err := <-b.over; !errors.Is(err, codec.ErrBadFrame) {
					t.Errorf("after an answer that was not due: %v, want %v", err, codec.ErrBadFrame)
				}
			})
		})
	}
}

// The session is told of the greeting, and closed by a request that goes ahead of those that wait. The answer ends
// the connection.
func TestConnBeginsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		hello := time.Now()
		b.start(t)
		b.CloseSession() // too early: it would close another session, or none
		time.Sleep(100 * time.Millisecond)
		b.answer(t, greetingFrame(42, 6000))
		if len(b.events.greetings) != 1 || b.events.greetings[0].Session != 42 || !b.events.hellos[0].Equal(hello) {
			t.Errorf("greeted with %+v, sent %v ago", b.events.greetings, time.Since(b.events.hellos[0]))
		}
		b.CloseSession()
		if ops := b.beaten(); len(ops) != 1 || ops[0] != codec.OpClose {
			t.Fatalf("sent %v, want closeSession", ops)
		}
		b.answer(t, replyFrame(firstXid-1, 0))
		if err := <-b.over; b.events.closes != 1 || !errors.Is(err, net.ErrClosed) {
			t.Errorf("after the answer to closeSession: %d confirmed, %v", b.events.closes, err)
		}
	})
}

// Greetings that end the connection.
func TestConnGreetingRefused(t *testing.T) {
	long := greetingFrame(42, 6000)
	long = append(long, 0)
	binary.BigEndian.PutUint32(long, uint32(len(long)-4))
	for _, c := range []struct {
		name     string
		frame    []byte
		refuse   error
		want     error
		expiries int
	}{
		{"another session", greetingFrame(43, 6000), ErrReplaced, ErrReplaced, 0},
		{"malformed", frameOf(0xff, 41), nil, codec.ErrBadFrame, 0},
		{"too long", long, nil, codec.ErrBadFrame, 0},
		{"of impossible length", []byte{0x7f, 0xff, 0xff, 0xff}, nil, codec.ErrBadFrame, 0},
		{"an answer in its place", replyFrame(1, 0), nil, codec.ErrBadFrame, 0},
		{"expired", greetingFrame(0, 0), nil, ErrNoSession, 1},
		{"it stops", greetingFrame(42, 6000)[:20], nil, os.ErrDeadlineExceeded, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, codec.Identity{Scheme: "digest", Credential: []byte("a:1")})
				b.events.refuse = c.refuse
				b.start(t)
				go func() { _, _ = b.server.Write(c.frame) }()
				if err := <-b.over; !errors.Is(err, c.want) {
					t.Errorf("ended with %v, want %v", err, c.want)
				}
				if b.events.expiries != c.expiries {
					t.Errorf("%d expiries, want %d", b.events.expiries, c.expiries)
				}
				if len(b.got) > 0 {
					t.Errorf("a frame was sent behind such a greeting: %v", <-b.got)
				}
			})
		})
	}
}

// A server that does not greet is given up after the limit, also one that does not take the handshake. A greeted
// connection has no limit of its own. Silence says how long an answer has been due.
func TestConnSilence(t *testing.T) {
	for _, takes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			start := time.Now()
			if takes {
				b.start(t)
			} else {
				go func() { b.over <- b.Serve(codec.Hello{TimeoutMillis: 6000}) }()
			}
			if err := <-b.over; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
				t.Errorf("takes the handshake: %v: %v after %v", takes, err, time.Since(start))
			}
			if b.Greeted() {
				t.Error("greeted")
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.greet(t)
		if d, _ := b.Silence(time.Now().Add(900 * time.Millisecond)); d != 0 || !b.Greeted() {
			t.Errorf("silent for %v with nothing in flight", d)
		}
		b.ask(codec.OpSync)
		time.Sleep(time.Minute)
		if d, _ := b.Silence(time.Now()); d != time.Minute {
			t.Errorf("silent for %v after a minute", d)
		}
		event := eventFrame(codec.EventCreated, "/a")
		b.answer(t, event[:2])
		if bytes, frame := b.Silence(time.Now()); bytes != 0 || frame != time.Minute {
			t.Errorf("no bytes for %v, no frame for %v after two bytes", bytes, frame)
		}
		b.answer(t, event[2:])
		if bytes, frame := b.Silence(time.Now()); bytes != 0 || frame != 0 {
			t.Errorf("no bytes for %v, no frame for %v after an event", bytes, frame)
		}
		if err := b.Err(); err != nil {
			t.Errorf("given up: %v", err)
		}
	})
}

// A write that fails ends the connection, and so does one that never ends once the connection is cut.
func TestConnWriteFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.greet(t)
		b.server.Close()
		b.ask(codec.OpSync)
		if err := <-b.over; !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("ended with %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // nobody reads at the other end
		b := newBench(t, codec.Identity{Scheme: "digest", Credential: []byte("a:1")})
		go func() { b.over <- b.Serve(codec.Hello{TimeoutMillis: 6000}) }()
		if _, err := codec.ReadFrame(b.server, codec.MaxFrame); err != nil {
			t.Fatal(err)
		}
		b.answer(t, greetingFrame(42, 6000))
		time.Sleep(time.Second)
		if !b.Stalled(time.Now()) {
			t.Error("not stalled")
		}
		why := errors.New("enough")
		b.Cut(why)
		if err := <-b.over; err != why {
			t.Errorf("ended with %v, want %v", err, why)
		}
	})
}

// busyEvents calls the connection from within an event, as a session may.
type busyEvents struct {
	*fakeEvents
	w *Conn
}

func (e busyEvents) call() {
	e.w.Silence(clock.Now())
	e.w.Call(outbox.Call{Frame: callFrame(codec.OpDelete, "/a"), Done: func(outbox.Reply) {}})
}
func (e busyEvents) Greeted(g codec.Greeting, sent time.Time) error { e.call(); return nil }
func (e busyEvents) Answered(a clock.Answered, zxid int64, since time.Duration) {
	e.call()
	e.w.CloseSession()
	e.fakeEvents.Answered(a, zxid, since)
}
func (e busyEvents) Fired(int32, string) { e.call() }
func (e busyEvents) Expired()            { e.call(); e.w.Cut(ErrNoSession) }

// A connection holds no lock when it tells its session something.
func TestEventsHoldNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.cfg.Events = busyEvents{b.events, b.Conn}
		b.greet(t)
		b.answer(t, eventFrame(codec.EventDeleted, "/a"))
		b.ask(codec.OpSync)
		var xids []int32
		for len(b.got) > 0 {
			if f := <-b.got; f[1] == codec.OpDelete || f[1] == codec.OpSync {
				xids = append(xids, f[0])
			}
		}
		if len(xids) != 3 {
			t.Fatalf("calls %v were sent, want 3", xids)
		}
		b.answer(t, replyFrame(1, codec.CodeOK))
		if len(b.events.answers) != 1 {
			t.Errorf("%d answers count", len(b.events.answers))
		}
	})
}
