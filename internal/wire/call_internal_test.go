package wire

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/outbox"
)

// called is what becomes of the calls of a test.
type called struct {
	*bench
	ended []string // in order
}

// call sends a request whose end is noted by a name.
func (c *called) call(name string, op int32) {
	c.Call(outbox.Call{Frame: callFrame(op, "/"+name), Done: func(r outbox.Reply) {
		switch {
		case errors.Is(r.Err, outbox.ErrNotSent):
			name += " not sent"
		case r.Err != nil:
			name += " forsaken"
		case r.Code != codec.CodeOK:
			name += fmt.Sprint(" ", r.Code)
		case op == codec.OpGetData:
			name += " " + string(r.Data)
		}
		c.ended = append(c.ended, name)
	}})
}

// wants compares what has ended.
func (c *called) wants(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, c.ended); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
}

// sent returns the operations of the frames that arrived since the last call, and their numbers.
func (c *called) sent() (ops, xids []int32) {
	synctest.Wait()
	for len(c.got) > 0 {
		f := <-c.got
		ops, xids = append(ops, f[1]), append(xids, f[0])
	}
	return ops, xids
}

func data(text string) []byte {
	var d codec.Encoder
	d.Buffer([]byte(text))
	return append(d.B, aStat...)
}

// Calls get their answers, whole, however the bytes come. Each has a number of its own.
func TestCall(t *testing.T) {
	for _, size := range []int{1, 30, 1000} {
		synctest.Test(t, func(t *testing.T) {
			c := &called{bench: newBench(t)}
			c.greet(t)
			c.sent()
			c.call("a", codec.OpGetData)
			c.call("b", codec.OpDelete)
			c.call("c", codec.OpGetData)
			ops, xids := c.sent()
			if diff := cmp.Diff([]int32{codec.OpGetData, codec.OpDelete, codec.OpGetData}, ops); diff != "" {
				t.Fatalf("sent (-want +got):\n%s", diff)
			}
			long := string(make([]byte, 300))
			stream := slices.Concat(replyFrame(xids[0], codec.CodeOK, data(long)...), replyFrame(xids[1], codec.CodeNoNode),
				replyFrame(xids[2], codec.CodeOK, data("")...))
			for piece := range slices.Chunk(stream, size) {
				c.answer(t, piece)
			}
			c.wants(t, "a "+long, "b -101", "c ")
			if c.cfg.Seen.Load() != 99 {
				t.Error("the transaction of the answers is not seen")
			}
		})
	}
}

// Answers and events come in the order of the stream, also in one piece.
func TestCallFollowsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &called{bench: newBench(t)}
		c.greet(t)
		c.sent()
		var order []string
		c.Call(outbox.Call{Frame: callFrame(codec.OpDelete, "/a"), Done: func(outbox.Reply) {
			order = append(order, fmt.Sprint("answer after ", c.events.fired))
		}})
		_, xids := c.sent()
		c.answer(t, slices.Concat(eventFrame(codec.EventDeleted, "/a"), replyFrame(xids[0], codec.CodeOK), eventFrame(codec.EventCreated, "/b")))
		if diff := cmp.Diff([]string{"answer after [2 /a]"}, order); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"2 /a", "1 /b"}, c.events.fired); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// An answer that cannot be true ends the connection. It proves nothing, and its call ends with the others.
func TestCallCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &called{bench: newBench(t)}
		c.greet(t)
		c.sent()
		wrong := errors.New("it cannot be true")
		var end outbox.Reply
		check := func(a *codec.Answer) error {
			if a.Path != "/other" {
				t.Errorf("checked %q", a.Path)
			}
			return wrong
		}
		c.Call(outbox.Call{Frame: callFrame(codec.OpCreate, "/a"), Check: check, Done: func(r outbox.Reply) { end = r }})
		_, xids := c.sent()
		c.answer(t, replyFrame(xids[0], codec.CodeOK, sized("/other")...))
		if err := <-c.over; !errors.Is(err, wrong) || !errors.Is(err, codec.ErrBadFrame) {
			t.Errorf("ended with %v", err)
		}
		if c.cfg.Seen.Load() != 0 || len(c.events.answers) > 0 {
			t.Error("it was believed")
		}
		c.Forsake()
		if end.Err == nil || end.Path != "" {
			t.Errorf("the call has ended with %+v", end)
		}
	})
}

// A call waits for the greeting, and goes behind the identities. The calls that wait go together, in order.
func TestCallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &called{bench: newBench(t, codec.Identity{Scheme: "digest", Credential: []byte("a:b")})}
		wants := func(when string, want ...int32) {
			t.Helper()
			if ops, _ := c.sent(); !slices.Equal(ops, want) {
				t.Errorf("%s: sent %v, want %v", when, ops, want)
			}
		}
		c.call("a", codec.OpDelete)
		c.start(t)
		c.call("b", codec.OpSync)
		wants("before the greeting")
		c.answer(t, greetingFrame(42, 6000)[:30])
		wants("within the greeting")
		c.answer(t, greetingFrame(42, 6000)[30:])
		wants("after the greeting", codec.OpAuth, codec.OpDelete, codec.OpSync)
	})
}

// A call does not block, also while the network takes no bytes.
func TestCallDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		go func() { b.over <- b.Serve(codec.Hello{TimeoutMillis: 6000}) }()
		arrives := func() int32 {
			f, err := codec.ReadFrame(b.server, codec.MaxFrame)
			if err != nil {
				t.Fatal(err)
			}
			return codec.Op(f)
		}
		arrives()
		b.answer(t, greetingFrame(42, 6000))
		want := []int32{codec.OpDelete, codec.OpExists, codec.OpSync}
		for _, op := range want {
			b.ask(op)
		}
		for _, op := range want {
			if got := arrives(); got != op {
				t.Errorf("kind %d arrives, want %d", got, op)
			}
		}
	})
}

// Every call ends once and in order, also those that are not sent.
func TestForsake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &called{bench: newBench(t)}
		c.greet(t)
		c.sent()
		c.call("answered", codec.OpDelete)
		_, xids := c.sent()
		c.answer(t, replyFrame(xids[0], codec.CodeOK))
		c.wants(t, "answered")
		want := []string{"answered"}
		for i := range 10 {
			c.call(fmt.Sprint("sent", i), codec.OpDelete)
			want = append(want, fmt.Sprint("sent", i, " forsaken"))
		}
		c.sent()
		c.Cut(net.ErrClosed)
		<-c.over
		c.call("waiting", codec.OpDelete)
		c.wants(t, "answered")
		c.Forsake()
		want = append(want, "waiting not sent")
		c.wants(t, want...)
		c.call("late", codec.OpDelete)
		c.Forsake()
		c.wants(t, append(want, "late not sent")...)
	})
}
