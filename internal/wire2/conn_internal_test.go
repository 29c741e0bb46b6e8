package wire

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// TestOneCall sees a request go out, and its answer and an event come in, in the order of the stream.
func TestOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.greet()
		create, reply := call(codec.OpCreate, "/a")
		b.Start(create)
		f := b.next()
		if codec.Op(f) != codec.OpCreate || codec.Xid(f) <= 0 {
			t.Fatalf("%s with number %d has left", codec.OpName(codec.Op(f)), codec.Xid(f))
		}
		b.say(replyFrame(codec.Xid(f), codec.CodeOK, sized("/a")...))
		if r := <-reply; r.Err != nil || r.Path != "/a" || r.Zxid != testZxid {
			t.Errorf("the reply is %+v", r)
		}
		if n := b.told(); !n.ByLeader || n.Zxid != testZxid {
			t.Errorf("the news of the answer is %+v", n)
		}
		if seen := b.cfg.Seen.Load(); seen != testZxid {
			t.Errorf("seen is %d", seen)
		}
		waiting, reply := call(codec.OpGetData, "/a")
		b.Start(waiting)
		b.next()
		b.server.Close()
		synctest.Wait()
		b.ended()
		b.Forsake()
		if r := <-reply; !errors.Is(r.Err, net.ErrClosed) || errors.Is(r.Err, ErrNotSent) {
			t.Errorf("a call in flight ended with %v", r.Err)
		}
		late, reply := call(codec.OpGetData, "/a")
		b.Start(late)
		if r := <-reply; !errors.Is(r.Err, ErrNotSent) {
			t.Errorf("a call after the end ended with %v", r.Err)
		}
	})
}
