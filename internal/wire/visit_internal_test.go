package wire

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// TestVisit has what a visit learns from the servers. It sends all at once, unless there is SASL.
func TestVisit(t *testing.T) {
	gone := replyFrame(visitXid, codec.CodeOK)
	ask := codec.Hello{TimeoutMillis: 1}
	for name, c := range map[string]struct {
		hello   codec.Hello
		answers []byte
		sasl    *SASL
		ops     []int32 // behind the handshake
		want    Outcome
	}{
		"closed":          {ask, slices.Concat(greetingFrame(42, 4000), replyFrame(codec.XidAuth, 0), gone), nil, []int32{codec.OpAuth, codec.OpClose}, Outcome{Greeted: true, Gone: true}},
		"expired":         {codec.Hello{Session: 42}, greetingFrame(0, 0), nil, []int32{codec.OpAuth, codec.OpClose}, Outcome{Greeted: true, Gone: true}},
		"expired since":   {codec.Hello{Session: 42}, slices.Concat(greetingFrame(42, 4000), replyFrame(visitXid, codec.CodeSessionExpired)), nil, []int32{codec.OpAuth, codec.OpClose}, Outcome{Greeted: true, Gone: true}},
		"another session": {codec.Hello{Session: 41}, slices.Concat(greetingFrame(42, 4000), gone), nil, []int32{codec.OpAuth, codec.OpClose}, Outcome{}},
		"refused":         {ask, slices.Concat(greetingFrame(42, 4000), replyFrame(codec.XidAuth, codec.CodeAuthFailed)), nil, []int32{codec.OpAuth, codec.OpClose}, Outcome{Greeted: true, Refused: true}},
		"not greeted":     {ask, nil, nil, []int32{codec.OpAuth, codec.OpClose}, Outcome{}},
		"malformed":       {ask, frameOf(0xff, 41), nil, []int32{codec.OpAuth, codec.OpClose}, Outcome{}},
		"too long":        {ask, []byte{0, 1, 0, 1}, nil, []int32{codec.OpAuth, codec.OpClose}, Outcome{}},
		"with SASL": {
			ask, slices.Concat(greetingFrame(42, 4000), replyFrame(visitXid, 0, sized("x")...), gone), begins(&talk{last: 1}),
			[]int32{codec.OpSASL, codec.OpAuth, codec.OpClose}, Outcome{Greeted: true, Gone: true},
		},
		"refused by SASL": {
			ask, slices.Concat(greetingFrame(42, 4000), replyFrame(visitXid, codec.CodeAuthFailed)), begins(&talk{last: 1}),
			[]int32{codec.OpSASL}, Outcome{Greeted: true, Refused: true},
		},
		"a mechanism that cannot begin is done without": {
			ask, slices.Concat(greetingFrame(42, 4000), gone), begins(nil), []int32{codec.OpAuth, codec.OpClose}, Outcome{Greeted: true, Gone: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				got := make(chan int32, 100)
				go func() {
					defer close(got)
					for first := true; ; first = false {
						f, err := codec.ReadFrame(far, codec.MaxFrame)
						if err != nil {
							return
						}
						if !first {
							got <- codec.Op(f)
						}
					}
				}()
				go func() {
					if _, err := far.Write(c.answers); err != nil || name == "refused" {
						far.Close()
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				v := Visit{Hello: c.hello, Identities: twoIdentities[:1], SASL: c.sasl, Limit: time.Second}
				began := time.Now()
				out := v.Run(ctx, near)
				if took := time.Since(began); took > 0 && name != "not greeted" || took > 10*time.Second {
					t.Errorf("it took %v", took)
				}
				if out.Greeted && out.Greeting.Session != 0 && out.Greeting.Timeout() != 4*time.Second {
					t.Errorf("greeted with %+v", out.Greeting)
				}
				if out.Greeting = (codec.Greeting{}); out != c.want {
					t.Errorf("the outcome is %+v, want %+v", out, c.want)
				}
				var ops []int32
				for op := range got {
					ops = append(ops, op)
				}
				if !slices.Equal(ops, c.ops) {
					t.Errorf("sent %v, want %v", ops, c.ops)
				}
				far.Close()
			})
		})
	}
}

// begins returns a mechanism whose exchanges are x. If that is nil, it cannot begin.
func begins(x Exchange) *SASL {
	return &SASL{Name: "TEST", Start: func(context.Context, string) (Exchange, []byte, error) {
		if x == nil {
			return nil, nil, errors.New("no ticket")
		}
		return x, nil, nil
	}}
}
