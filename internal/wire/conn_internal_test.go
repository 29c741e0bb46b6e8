package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
)

var twoIdentities = []codec.Identity{
	{Scheme: "digest", Credential: []byte("a:1")}, {Scheme: "x509", Credential: []byte("b")},
}

// TestGreet returns the greeting and when the handshake was sent, and sends identities, the write of a session that owns
// nodes, and calls in that order, all behind the greeting, in whatever pieces that comes.
func TestGreet(t *testing.T) {
	for _, size := range []int{100, 1} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(c *Config) { c.Identities = twoIdentities; c.Owned.Store(1); c.Seen.Store(7) })
			hello := clock.Now()
			early, _ := call(codec.OpDelete, "/early")
			b.Start(early)
			go func() {
				g, sent, err := b.Greet()
				if g.Session != 42 || g.Timeout() != 6*time.Second || !sent.Equal(hello) || err != nil {
					t.Errorf("greeted with %+v, sent %v late, %v", g, sent.Sub(hello), err)
				}
				if err := b.Open(); err != nil {
					t.Error(err)
				}
			}()
			f, err := codec.ReadFrame(b.server, codec.MaxFrame)
			if want := (codec.Hello{TimeoutMillis: 6000, LastZxid: 7}).Frame(); err != nil || !bytes.Equal(f, want) {
				t.Errorf("%v: the handshake is\n%x, want\n%x", err, f, want)
			}
			go b.listen()
			time.Sleep(100 * time.Millisecond)
			b.ask(codec.OpSync, "/late")
			for piece := range slices.Chunk(greetingFrame(42, 6000), size) {
				b.nothing()
				if b.Greeted() {
					t.Error("open too early")
				}
				b.say(piece)
			}
			want := []int32{codec.OpAuth, codec.OpAuth, codec.OpMulti, codec.OpDelete, codec.OpSync}
			if diff := cmp.Diff(want, b.ops()); diff != "" || !b.Greeted() {
				t.Errorf("open %t (-want +got):\n%s", b.Greeted(), diff)
			}
		})
	}
}

// TestHandshakeLimit gives up a server that does not greet after the limit, also one that does not take the handshake.
// After that there is no limit.
func TestHandshakeLimit(t *testing.T) {
	for _, takes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, nil)
			start := time.Now()
			if takes {
				b.start()
			} else {
				go b.serve()
			}
			if err := <-b.over; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != testLimit || b.Greeted() {
				t.Errorf("takes the handshake: %v: %v after %v", takes, err, time.Since(start))
			}
		})
	}
	greeted(t, nil, func(t *testing.T, b *bench) {
		time.Sleep(100 * testLimit)
		if err := b.Err(); err != nil {
			t.Error(err)
		}
	})
}

// TestSilence tells for how long an answer has been due, while no byte came and while no frame began.
func TestSilence(t *testing.T) {
	greeted(t, nil, func(t *testing.T, b *bench) {
		if d, _ := b.Silence(clock.Now().Add(900 * time.Millisecond)); d != 0 {
			t.Errorf("silent for %v with nothing in flight", d)
		}
		b.ask(codec.OpSync, "/a")
		time.Sleep(time.Minute)
		if d, _ := b.Silence(clock.Now()); d != time.Minute {
			t.Errorf("silent for %v after a minute", d)
		}
		event := eventFrame(codec.EventCreated, "/a")
		b.say(event[:2])
		if bytes, frame := b.Silence(clock.Now()); bytes != 0 || frame != time.Minute {
			t.Errorf("no bytes for %v, no frame for %v after two bytes", bytes, frame)
		}
		b.say(event[2:])
		if bytes, frame := b.Silence(clock.Now()); bytes != 0 || frame != 0 {
			t.Errorf("no bytes for %v, no frame for %v after an event", bytes, frame)
		}
	})
}

// TestReason returns the first reason for which a connection has ended. The errors that follow from it do not replace it.
func TestReason(t *testing.T) {
	cut := errors.New("cut by the session")
	for name, c := range map[string]struct {
		do   func(b *bench)
		want error
	}{
		"hung up":          {func(b *bench) { b.server.Close() }, io.EOF},
		"within a frame":   {func(b *bench) { b.say(numbers(20)); b.server.Close() }, io.ErrUnexpectedEOF},
		"cut":              {func(b *bench) { b.Cut(cut) }, cut},
		"cut twice":        {func(b *bench) { b.Cut(cut); b.Cut(errors.New("again")) }, cut},
		"cut, hung up":     {func(b *bench) { b.Cut(cut); b.server.Close() }, cut},
		"bad frame":        {func(b *bench) { b.say(numbers(-7)) }, codec.ErrBadFrame},
		"bad, then cut":    {func(b *bench) { b.say(numbers(-7)); b.Cut(cut) }, codec.ErrBadFrame},
		"bad event":        {func(b *bench) { b.say(eventFrame(9, "/")) }, codec.ErrBadFrame},
		"cut, then called": {func(b *bench) { b.Cut(cut); b.ask(codec.OpSync, "/a") }, cut},
	} {
		greeted(t, nil, func(t *testing.T, b *bench) {
			if err := b.Err(); err != nil {
				t.Fatal(err)
			}
			c.do(b)
			if served := b.ended(); !errors.Is(b.Err(), c.want) || !errors.Is(served, c.want) {
				t.Errorf("%s: %v, and Close returned %v; want %v", name, b.Err(), served, c.want)
			}
		})
	}
}

// TestBlockedWrite ends a connection whose peer takes no bytes when it is cut, and calls do not block meanwhile.
func TestBlockedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.Identities = twoIdentities })
		b.start()
		b.say(greetingFrame(42, 6000)) // from now on nobody reads
		for range 3 {
			b.ask(codec.OpDelete, "/a")
		}
		time.Sleep(time.Second)
		why := errors.New("enough")
		b.Cut(why)
		if err := b.ended(); !errors.Is(err, why) {
			t.Errorf("ended with %v, want %v", err, why)
		}
	})
}

// deafConn is a connection whose Write does not return when it is closed.
type deafConn struct {
	net.Conn
	hear chan struct{}
}

func (c *deafConn) Write(b []byte) (int, error) { <-c.hear; return c.Conn.Write(b) }

// TestCloseWaitsForWriter sees that nothing more is written once Close has returned: the frames belong to others then.
func TestCloseWaitsForWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		deaf := &deafConn{b.net, make(chan struct{}, 1)}
		b.net = deaf
		deaf.hear <- struct{}{} // the handshake
		b.greet()
		b.ask(codec.OpDelete, "/a")
		b.Cut(net.ErrClosed)
		synctest.Wait()
		if len(b.over) > 0 {
			t.Error("Close has returned before the writer")
		}
		close(deaf.hear)
		b.ended()
	})
}

// brokenConn is a connection of a user's dialer that breaks the contract of io.Reader, or that of io.Writer.
type brokenConn struct {
	net.Conn
	reads, writes bool
}

func (c *brokenConn) Read(b []byte) (int, error) {
	if c.reads {
		return 0, nil
	}
	return c.Conn.Read(b)
}

func (c *brokenConn) Write(b []byte) (int, error) {
	if c.writes {
		b = b[:len(b)/2]
	}
	return c.Conn.Write(b)
}

// TestBrokenConn sees that a Read which returns nothing again and again does not keep the processor busy, and that a short
// Write does not leave half of a frame on the network. Both end the connection.
func TestBrokenConn(t *testing.T) {
	for want, c := range map[error]*brokenConn{io.ErrNoProgress: {reads: true}, io.ErrShortWrite: {writes: true}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, nil)
			go func() { _, _ = io.Copy(io.Discard, b.server) }()
			c.Conn = b.net
			b.net = c
			go b.serve()
			if err := <-b.over; !errors.Is(err, want) {
				t.Errorf("ended with %v, want %v", err, want)
			}
		})
	}
}

// TestCloseSession sends closeSession ahead of what waits, which is not sent any more. Its answer is news. Before the
// greeting it would close another session, or none.
func TestCloseSession(t *testing.T) {
	greeted(t, nil, func(t *testing.T, b *bench) {
		var waiting []chan Reply
		for range mostCalls + 10 {
			c, reply := call(codec.OpDelete, "/a")
			b.Start(c)
			waiting = append(waiting, reply)
		}
		inFlight := b.frames()
		b.CloseSession()
		if ops := b.ops(); !slices.Equal(ops, []int32{codec.OpClose}) {
			t.Fatalf("sent %v, want closeSession", ops)
		}
		for _, reply := range waiting[mostCalls:] {
			if r := ended(reply); r == nil || !errors.Is(r.Err, ErrNotSent) {
				t.Errorf("a call that waited: %+v", r)
			}
		}
		for _, f := range inFlight {
			b.say(answerTo(f))
			b.told()
		}
		b.say(replyFrame(mostCalls+1, codec.CodeOK))
		if n := b.told(); !n.Closed {
			t.Errorf("the news is %+v", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.start()
		b.CloseSession()
		b.say(greetingFrame(42, 6000))
		go b.listen()
		b.nothing()
	})
}

// TestForsake ends every call once and in order, also those that are not sent.
func TestForsake(t *testing.T) {
	greeted(t, nil, func(t *testing.T, b *bench) {
		var order []int
		start := func(i int, want func(Reply) bool) {
			c, _ := call(codec.OpDelete, "/a")
			c.Done = func(r Reply) {
				if order = append(order, i); !want(r) {
					t.Errorf("call %d ended with %+v", i, r)
				}
			}
			b.Start(c)
		}
		sent := func(r Reply) bool { return errors.Is(r.Err, net.ErrClosed) && !errors.Is(r.Err, ErrNotSent) }
		notSent := func(r Reply) bool { return errors.Is(r.Err, ErrNotSent) }
		start(0, func(r Reply) bool { return r.Err == nil })
		b.say(replyFrame(codec.Xid(b.next()), codec.CodeOK))
		want := []int{0}
		for i := range mostCalls {
			start(i+1, sent)
			want = append(want, i+1)
		}
		synctest.Wait()
		start(mostCalls+1, notSent)
		b.Cut(net.ErrClosed)
		b.ended()
		start(mostCalls+2, notSent)
		if len(order) != 1 {
			t.Errorf("%d calls have ended before Forsake", len(order))
		}
		b.Forsake()
		start(mostCalls+3, notSent)
		b.Forsake()
		want = append(want, mostCalls+1, mostCalls+2, mostCalls+3)
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("ended (-want +got):\n%s", diff)
		}
	})
}
