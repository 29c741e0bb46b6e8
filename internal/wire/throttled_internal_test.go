package wire

import (
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/outbox"
)

// A server over its limit of outstanding requests reads nothing behind a request that it counts until that is answered. A
// heartbeat behind a burst waits for one such request, and not for all.
func TestThrottled(t *testing.T) {
	const takes = time.Second
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		go func() { b.over <- b.Serve(codec.Hello{TimeoutMillis: 10_000}) }()
		if _, err := codec.ReadFrame(b.server, codec.MaxFrame); err != nil {
			t.Fatal(err)
		}
		b.answer(t, greetingFrame(42, 10_000))
		replies := make(chan []byte, 1000)
		line := make(chan []byte, 1000) // the network
		stop := make(chan struct{})
		go func() {
			for {
				f, err := codec.ReadFrame(b.server, codec.MaxFrame)
				if err != nil {
					close(line)
					return
				}
				line <- f
			}
		}()
		go func() {
			for {
				select {
				case r := <-replies:
					_, _ = b.server.Write(r)
				case <-stop:
					return
				}
			}
		}()
		var done, ping atomic.Int64
		for range firstCalls {
			b.Call(outbox.Call{Frame: callFrame(codec.OpDelete, "/a"), Done: func(outbox.Reply) { done.Add(1) }})
		}
		synctest.Wait()
		began := time.Now()
		b.mu.Lock()
		b.urgent = append(b.urgent, codec.PingFrame())
		b.mu.Unlock()
		b.poke()
		go func() {
			defer close(stop)
			for f := range line {
				xid, r := codec.Xid(f), replyFrame(codec.Xid(f), codec.CodeNoNode)
				if xid == codec.XidPing {
					ping.CompareAndSwap(0, int64(time.Since(began)))
				}
				if codec.Op(f) == codec.OpPing || codec.Op(f) == codec.OpSync {
					r = replyFrame(xid, 0, bodies[codec.Op(f)]...)
				}
				if xid > 0 { // all are in process for as long, and behind this one nothing is read
					time.Sleep(takes)
				}
				time.AfterFunc(takes, func() { replies <- r })
			}
			time.Sleep(2 * takes)
		}()
		time.Sleep(30 * time.Second)
		if d := time.Duration(ping.Load()); d == 0 || d > 2*takes || done.Load() != firstCalls {
			t.Errorf("the ping was read after %v, and %d calls have ended", d, done.Load())
		}
		b.Cut(net.ErrClosed)
		<-b.over
		b.server.Close()
		time.Sleep(5 * takes) // until the server has ended
	})
}
