package wire

import (
	"fmt"
	"io"
	"math"
	"net"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func callFrame(op int32, path string) []byte {
	e := NewFrame()
	e.Int32(0)
	e.Int32(op)
	e.String(path)
	return e.Frame()
}

// called is what becomes of the calls of a test.
type called struct {
	*bench
	ended []string // in order
}

// call sends a request whose end is noted by a name.
func (c *called) call(name string, op int32) {
	c.Call(callFrame(op, "/"+name), func(r Reply) {
		switch {
		case r.Err != nil:
			name += " forsaken"
		case r.Code != CodeOK:
			name += fmt.Sprint(" ", r.Code)
		case op == OpGetData:
			name += " " + string(r.Body.Buffer())
		}
		c.ended = append(c.ended, name)
	})
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
	var d Encoder
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
			c.call("a", OpGetData)
			c.call("b", OpDelete)
			c.call("c", OpGetData)
			ops, xids := c.sent()
			if diff := cmp.Diff([]int32{OpGetData, OpDelete, OpGetData}, ops); diff != "" {
				t.Fatalf("sent (-want +got):\n%s", diff)
			}
			long := string(make([]byte, 300))
			stream := slices.Concat(replyFrame(xids[0], CodeOK, data(long)...), replyFrame(xids[1], CodeNoNode),
				replyFrame(xids[2], CodeOK, data("")...))
			for piece := range slices.Chunk(stream, size) {
				c.answer(t, piece)
			}
			c.wants(t, "a "+long, "b -101", "c ")
			if c.cfg.Seen.zxid.Load() != 99 {
				t.Error("the transaction of the answers is not seen")
			}
		})
	}
}

// An answer does not count before zk.Conn has dealt with the events that came before it. The event and the answer come in
// one piece.
func TestCallFollowsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &called{bench: newBench(t)}
		c.send(t, 0, 0)
		<-c.got
		greeting := greetingFrame(42, 6000)
		go func() { _, _ = c.server.Write(greeting) }()
		reads := func(n int) {
			t.Helper()
			if _, err := io.ReadFull(c, make([]byte, n)); err != nil {
				t.Error(err)
			}
		}
		reads(len(greeting))
		c.call("a", OpDelete)
		_, xids := c.sent()
		event, answer := replyFrame(XidEvent, 0, numbers(EventDeleted, 3, 1, '/'<<24)[:13]...), replyFrame(xids[0], CodeOK)
		go func() { _, _ = c.server.Write(slices.Concat(event, answer)) }()
		reads(len(event))
		c.wants(t) // zk.Conn has the event, and may be about to deal with it
		reads(len(answer))
		c.wants(t)
		go func() { _, _ = c.Read(make([]byte, 4)) }()
		c.wants(t, "a")
		c.call("b", OpDelete)
		_, xids = c.sent()
		go func() { _, _ = c.server.Write(replyFrame(xids[0], CodeOK)) }()
		c.wants(t, "a")
		c.Forsake()
		c.wants(t, "a", "b forsaken")
	})
}

// A call waits for the greeting, and goes behind the identities. The calls that wait go together, in order.
func TestCallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &called{bench: newBench(t)}
		c.ids.list = []Identity{{"digest", []byte("a:b")}}
		wants := func(when string, want ...int32) {
			t.Helper()
			if ops, _ := c.sent(); !slices.Equal(ops, want) {
				t.Errorf("%s: sent %v, want %v", when, ops, want)
			}
		}
		c.call("a", OpDelete)
		wants("before the handshake")
		c.send(t, 0, 0)
		<-c.got
		c.call("b", OpSync)
		wants("before the greeting")
		go c.read()
		c.answer(t, greetingFrame(42, 6000))
		wants("after the greeting", OpAuth, OpDelete, OpSync)
	})
}

// A call does not block, also while the network takes no bytes. A request of zk.Conn does not overtake it.
func TestCallDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		events := &fakeEvents{}
		w := New(near, config(events))
		defer events.beats.Wait()
		defer w.Close()
		arrives := func() (xid, op int32) {
			f, err := ReadFrame(far, MaxFrame)
			if err != nil {
				t.Fatal(err)
			}
			return xidOf(f), opOf(f)
		}
		go func() { _, _ = w.Write(Hello{TimeoutMillis: 6000}.Frame()) }()
		arrives()
		go func() { _, _ = io.Copy(io.Discard, w) }()
		if _, err := far.Write(greetingFrame(42, 6000)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		for range 3 {
			w.Call(callFrame(OpDelete, "/a"), func(Reply) {})
			synctest.Wait()
		}
		go func() { _, _ = w.Write(syncFrame(5)) }()
		synctest.Wait()
		for _, want := range []int32{OpDelete, OpDelete, OpDelete, OpSync} {
			if _, op := arrives(); op != want {
				t.Errorf("kind %d arrives, want %d", op, want)
			}
		}
	})
}

// Every call ends once and in order, also those that are not sent, and those whose answer came and that zk.Conn
// did not read.
func TestForsake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &called{bench: newBench(t)}
		c.greet(t)
		c.sent()
		c.call("answered", OpDelete)
		_, xids := c.sent()
		c.answer(t, replyFrame(xids[0], CodeOK))
		c.wants(t, "answered")
		want := []string{"answered"}
		for i := range 10 {
			c.call(fmt.Sprint("sent", i), OpDelete)
			want = append(want, fmt.Sprint("sent", i, " forsaken"))
		}
		c.sent()
		c.Close()
		synctest.Wait()
		c.call("waiting", OpDelete)
		c.wants(t, "answered") // zk.Conn may not have done with the connection
		c.Forsake()
		want = append(want, "waiting forsaken")
		c.wants(t, want...)
		c.call("late", OpDelete)
		c.Forsake()
		c.wants(t, append(want, "late forsaken")...)
	})
}

// The numbers begin again before they are used up, and are never those that mean something else.
func TestCallNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &called{bench: newBench(t)}
		c.greet(t)
		c.sent()
		c.Conn.mu.Lock()
		c.lastXid = math.MinInt32 + 1
		c.Conn.mu.Unlock()
		for range 3 {
			c.call("a", OpDelete)
		}
		_, xids := c.sent()
		if diff := cmp.Diff([]int32{math.MinInt32, firstXid - 1, firstXid - 2}, xids); diff != "" {
			t.Errorf("numbers (-want +got):\n%s", diff)
		}
	})
}

// After a burst, the calls of a connection take no more memory than before it.
func TestCallsShrink(t *testing.T) {
	var c calls
	c.begin(time.Hour)
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	xid := int32(firstXid)
	next := func() int32 { xid--; return xid }
	burst := func(n int) {
		first := xid
		frame := callFrame(OpDelete, "/a")
		for range n {
			c.post(call{frame, func(Reply) {}})
		}
		c.window.calls, c.window.bytes = n, n*len(frame)
		for c.canLeave() {
			c.take(Now(), Now(), next)
		}
		for i := range n {
			c.answer(Now(), first-1-int32(i), int64(i), Reply{})
		}
		c.deliver(math.MaxInt64)
	}
	burst(10)
	before := heap()
	burst(10_000)
	for range 1000 {
		burst(1)
	}
	if more := int64(heap()) - int64(before); more > 64<<10 {
		t.Errorf("%d bytes are kept after a burst of 10000 calls", more)
	}
	runtime.KeepAlive(&c)
}
