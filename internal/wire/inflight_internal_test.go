package wire

import (
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/outbox"
)

// However many calls there are, so many are in flight, and the others follow in order as answers come. Heartbeats do not
// wait.
func TestCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &called{bench: newBench(t)}
		c.greet(t)
		c.sent()
		for range firstCalls + 5 {
			c.call("a", codec.OpExists)
		}
		ops, xids := c.sent()
		if len(ops) != firstCalls {
			t.Fatalf("%d calls are in flight, want %d", len(ops), firstCalls)
		}
		c.call("b", codec.OpSetData)
		c.call("c", codec.OpDelete)
		c.call("d", codec.OpDelete)
		if ops, _ := c.sent(); len(ops) > 0 {
			t.Errorf("%v leave while the window is full", ops)
		}
		var left []int32
		for i := range 5 {
			c.answer(t, replyFrame(xids[i], codec.CodeNoNode))
			ops, _ := c.sent()
			left = append(left, ops...)
			if got := firstCalls + len(left) - (i + 1); got > firstCalls+i+1 {
				t.Errorf("%d calls in flight after %d answers", got, i+1)
			}
		}
		want := []int32{codec.OpExists, codec.OpExists, codec.OpExists, codec.OpExists, codec.OpExists, codec.OpSetData, codec.OpDelete, codec.OpDelete}
		if !slices.Equal(left, want) {
			t.Errorf("%v leave then, want %v", left, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := &called{bench: newBench(t)}
		c.events.owns = true
		c.greet(t)
		for range 1000 {
			c.call("a", codec.OpSetData)
		}
		c.sent()
		time.Sleep(c.timeout / 2)
		if ops, _ := c.sent(); !slices.Contains(ops, codec.OpSync) || !slices.Contains(ops, codec.OpPing) || slices.Contains(ops, codec.OpSetData) {
			t.Errorf("%v leave while the window is full, want heartbeats", ops)
		}
	})
}

// The end of the stream ends the connection at once, also while a write waits for a peer that takes no bytes.
func TestEndOfStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		half := &halfClosed{Conn: near, over: make(chan struct{})}
		w := New(half, config(&fakeEvents{}))
		ended := make(chan error, 1)
		go func() { ended <- w.Serve(codec.Hello{TimeoutMillis: 6000}) }()
		if _, err := codec.ReadFrame(far, codec.MaxFrame); err != nil {
			t.Fatal(err)
		}
		if _, err := far.Write(greetingFrame(42, 6000)); err != nil {
			t.Fatal(err)
		}
		w.Call(outbox.Call{Frame: callFrame(codec.OpDelete, "/a"), Done: func(outbox.Reply) {}})
		time.Sleep(2 * stall)
		if !w.Stalled(time.Now()) {
			t.Fatal("the write does not wait")
		}
		began := time.Now()
		close(half.over)
		<-ended
		if took := time.Since(began); took != 0 {
			t.Errorf("the connection ended %v after the end of the stream", took)
		}
	})
}

// halfClosed is a connection whose peer can end the stream without closing it.
type halfClosed struct {
	net.Conn
	over chan struct{}
}

func (c *halfClosed) Read(b []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	got := make(chan result, 1)
	go func() { n, err := c.Conn.Read(b); got <- result{n, err} }()
	select {
	case r := <-got:
		return r.n, r.err
	case <-c.over:
		return 0, net.ErrClosed
	}
}
