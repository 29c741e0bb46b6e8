package wire

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// TestCallsRandomly has calls of all kinds come, leave, be answered and withdrawn in any order. Each ends once, unless it
// was withdrawn; what was withdrawn has not left; and a listing leaves behind all that its callers sent before it.
func TestCallsRandomly(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newUnserved(&streamed{})
		type state struct {
			*Call
			ends, at  int  // how often it has ended; how many calls came before it
			withdrawn bool // it must not end
			first     bool
		}
		var all []*state
		left := make(map[*entry]int) // in which order
		send := func() {
			before := len(w.flight)
			w.batch()
			for _, f := range w.flight[before:] {
				if _, twice := left[f.entry]; twice {
					t.Fatalf("seed %d: a call has left twice", seed)
				}
				left[f.entry] = len(left)
			}
			if w.flying > mostCalls || w.load > mostBytes && w.flying > 1 {
				t.Fatalf("seed %d: %d calls, %d bytes in flight", seed, w.flying, w.load)
			}
		}
		for range 2000 {
			switch r.IntN(10) {
			case 0, 1, 2, 3:
				s := &state{at: len(all), first: r.IntN(4) == 0}
				op, path := int32(codec.OpDelete), fmt.Sprintf("/%d", r.IntN(3))
				if r.IntN(3) == 0 {
					op, s.first = codec.OpGetChildren2, false
				}
				if r.IntN(20) == 0 {
					path += strings.Repeat("x", r.IntN(2*mostBytes))
				}
				s.Call, _ = call(op, path)
				s.First, s.Done = s.first, func(Reply) { s.ends++ }
				all = append(all, s)
				w.Start(s.Call)
			case 4:
				if len(all) > 0 {
					s := all[len(all)-1-r.IntN(min(len(all), 100))]
					_, gone := left[s.entry]
					if got := w.Withdraw(s.Call); got {
						if gone || s.withdrawn || s.ends > 0 {
							t.Fatalf("seed %d: call %d is withdrawn: has left %v, ended %d times", seed, s.at, gone, s.ends)
						}
						s.withdrawn = true
					} else if !gone && !s.withdrawn {
						t.Fatalf("seed %d: call %d has not left, and is not withdrawn", seed, s.at)
					}
				}
			case 5, 6:
				send()
			default:
				if len(w.flight) > 0 {
					n, err := w.take(replyFrame(w.flight[0].Xid, codec.CodeNoNode)[4:])
					if err != nil {
						t.Fatal(err)
					}
					n.End()
				}
			}
		}
		send()
		w.Forsake()
		for i, s := range all {
			if want := 1; s.withdrawn != (s.ends == 0) || s.ends > want {
				t.Fatalf("seed %d: call %d has ended %d times, withdrawn %v", seed, i, s.ends, s.withdrawn)
			}
			at, ok := left[s.entry]
			if s.withdrawn || !ok {
				continue
			}
			for _, before := range all[:i] { // what came before leaves before, but for the deletes that go first
				got, ok := left[before.entry]
				if before.withdrawn || before.entry == s.entry || s.first && !before.first || codec.Op(before.Frame) == codec.OpGetChildren2 {
					continue
				}
				if !ok || got > at {
					t.Fatalf("seed %d: call %d has left before call %d", seed, i, before.at)
				}
			}
		}
	}
}

// TestCallsEndOnceConcurrentSafe has calls, answers, withdrawals, the end of the connection and Forsake come at the same
// time, with real goroutines and TCP. Each call ends once, with its own answer or with none.
func TestCallsEndOnceConcurrentSafe(t *testing.T) {
	const connections, callers, each = 50, 8, 100
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
		if ended := callUntilCut(t, ln.Addr().String(), callers, each); ended != callers*each {
			t.Fatalf("%d calls, of which %d have ended", callers*each, ended)
		}
	}
	ln.Close()
	served.Wait()
}

// answerSome is a server that hangs up after so many frames. It says of reads that they succeed, of other requests that there
// is no node.
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
		case codec.Op(f) == codec.OpGetData, codec.Op(f) == codec.OpGetChildren2:
			_, err = c.Write(answerTo(f))
		default:
			_, err = c.Write(replyFrame(codec.Xid(f), codec.CodeNoNode))
		}
		if err != nil {
			return
		}
	}
}

// callUntilCut makes calls on one connection until the server hangs up, and returns how many have ended or were withdrawn.
func callUntilCut(t *testing.T, addr string, callers, each int) int {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig()
	cfg.Limit = time.Minute
	if rand.IntN(2) == 0 {
		cfg.Identities = twoIdentities
	}
	w := New(c, cfg)
	var all sync.WaitGroup
	var over atomic.Int64
	for range callers {
		all.Go(func() {
			for range each {
				op := []int32{codec.OpGetData, codec.OpDelete, codec.OpGetChildren2}[rand.IntN(3)]
				one, _ := call(op, "/a")
				one.Done = func(r Reply) {
					if r.Err == nil && (r.Code == codec.CodeOK) == (op == codec.OpDelete) {
						t.Errorf("request %d got the answer %d", op, r.Code)
					}
					over.Add(1)
				}
				w.Start(one)
				if rand.IntN(4) == 0 && w.Withdraw(one) {
					over.Add(1)
				}
			}
		})
	}
	var cut sync.WaitGroup
	cut.Go(func() { all.Wait(); w.Cut(net.ErrClosed) })
	_, _, err = w.Greet()
	if err == nil {
		err = w.Open()
	}
	for err == nil {
		var n News
		if n, err = w.Next(); err == nil {
			n.End()
		}
	}
	_ = w.Close(err)
	w.Forsake()
	cut.Wait()
	return int(over.Load())
}
