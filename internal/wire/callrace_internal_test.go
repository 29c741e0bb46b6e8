package wire

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/outbox"
)

// Calls, answers, the end of the connection and Forsake come at the same time, with real goroutines and TCP. Each call
// ends once, with its own answer or with none.
func TestCallsEndOnceConcurrentSafe(t *testing.T) {
	const connections, callers, each = 100, 8, 100
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			served.Go(func() { answerSome(c, rand.IntN(callers*each)) })
		}
	})
	for range connections {
		begun, ended := callUntilCut(t, ln.Addr().String(), callers, each)
		if begun != ended {
			t.Fatalf("%d calls, of which %d have ended", begun, ended)
		}
	}
	ln.Close()
	served.Wait()
}

// answerSome is a server that hangs up after so many frames. It says of reads that they succeed, of other
// requests that there is no node.
func answerSome(c net.Conn, frames int) {
	defer c.Close()
	for i := range frames {
		f, err := codec.ReadFrame(c, codec.MaxFrame)
		switch {
		case err != nil:
			return
		case i == 0:
			_, err = c.Write(greetingFrame(42, 6000))
		case codec.Xid(f) == codec.XidAuth:
			_, err = c.Write(replyFrame(codec.XidAuth, 0))
		case codec.Op(f) == codec.OpGetData:
			_, err = c.Write(replyFrame(codec.Xid(f), codec.CodeOK, data("x")...))
		default:
			_, err = c.Write(replyFrame(codec.Xid(f), codec.CodeNoNode))
		}
		if err != nil {
			return
		}
	}
}

// callUntilCut makes calls on one connection until the server hangs up.
func callUntilCut(t *testing.T, addr string, callers, each int) (begun, ended int64) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(&fakeEvents{})
	if rand.IntN(2) == 0 {
		cfg.Identities = []codec.Identity{{Scheme: "digest", Credential: []byte("a:b")}}
	}
	w := New(c, cfg)
	var all sync.WaitGroup
	var over atomic.Int64
	for range callers {
		all.Go(func() {
			for range each {
				op := []int32{codec.OpGetData, codec.OpDelete}[rand.IntN(2)]
				w.Call(outbox.Call{Frame: callFrame(op, "/a"), Done: func(r outbox.Reply) {
					if r.Err == nil && (r.Code == codec.CodeOK) != (op == codec.OpGetData) {
						t.Errorf("request %d got the answer %d", op, r.Code)
					}
					over.Add(1)
				}})
			}
		})
	}
	_ = w.Serve(codec.Hello{TimeoutMillis: 6000})
	w.Forsake()
	all.Wait()
	return int64(callers * each), over.Load()
}
