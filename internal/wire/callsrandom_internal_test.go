package wire

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// TestCallsRandomly has calls of all kinds come, leave, be answered and withdrawn in any order. Each ends once, unless it
// was withdrawn; what was withdrawn has not left; and a listing leaves behind all that its callers sent before it.
func TestCallsRandomly(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newUnserved(&streamed{})
		w.number = math.MaxInt32 - 100 // numbers are positive, and begin again at their end
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
				if _, twice := left[f.entry]; twice || f.Xid <= 0 {
					t.Fatalf("seed %d: a call has left twice, or has number %d", seed, f.Xid)
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
