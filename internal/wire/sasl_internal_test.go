package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/digestmd5"
)

// talk is an exchange that goes on for as long as it is told to.
type talk struct{ last int }

func (x *talk) Challenge(said []byte) ([]byte, bool, error) {
	if x.last--; x.last > 0 {
		return append([]byte("to "), said...), false, nil
	}
	return nil, true, nil
}

func saslBench(t *testing.T, x Exchange) *bench {
	b := newBench(t, codec.Identity{Scheme: "digest", Credential: []byte("a:1")})
	b.cfg.SASL = &SASL{Name: "TEST", Start: func(time.Duration) (Exchange, []byte, error) { return x, nil, nil }}
	b.events.owns = true
	return b
}

func (b *bench) nextXid(t *testing.T) int32 {
	t.Helper()
	synctest.Wait()
	f := <-b.got
	if f[1] != codec.OpSASL {
		t.Fatalf("sent %v, want a step of SASL", f)
	}
	return f[0]
}

func token(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

// SASL comes right behind the greeting. Identities, heartbeats and requests wait for its end, and the clock takes
// nothing from its answers.
func TestSASLComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := saslBench(t, &talk{last: 3})
		b.cfg.HandshakeLimit = time.Minute
		b.greet(t)
		b.ask(codec.OpSync)
		for i := range 3 {
			time.Sleep(10 * time.Second)
			if b.Greeted() || len(b.got) != 1 {
				t.Errorf("step %d: ready %t, %d frames", i, b.Greeted(), len(b.got))
			}
			b.answer(t, replyFrame(b.nextXid(t), codec.CodeOK, token("x")...))
		}
		var ops []int32
		for len(b.got) > 0 {
			ops = append(ops, (<-b.got)[1])
		}
		if diff := cmp.Diff([]int32{codec.OpAuth, codec.OpMulti, codec.OpSync}, ops[:3]); diff != "" || !b.Greeted() {
			t.Errorf("ready %t (-want +got):\n%s", b.Greeted(), diff)
		}
		b.events.do(func() {
			if len(b.events.answers) > 0 {
				t.Errorf("the clock was told %v", b.events.answers)
			}
		})
	})
}

// A write behind a long exchange proves what the handshake does, which was sent before the exchange: nothing of the
// exchange went through the leader.
func TestSASLProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := saslBench(t, &talk{last: 1})
		b.cfg.HandshakeLimit = time.Minute
		b.ids = nil
		hello := time.Now()
		b.greet(t)
		time.Sleep(2 * time.Second)
		b.answer(t, replyFrame(b.nextXid(t), codec.CodeOK, token("x")...))
		write := <-b.got
		if write[1] != codec.OpMulti {
			t.Fatalf("sent %v, want a write", write)
		}
		b.answer(t, replyFrame(write[0], codec.CodeNoNode))
		b.events.do(func() {
			if got := b.events.answers; len(got) != 1 || !got[0].Quorum || got[0].Touched.After(hello) {
				t.Errorf("the answer proves %v, want what was so at %v", got, hello)
			}
		})
	})
}

// Whatever a server does in an exchange, it ends in time, and the session is told only of refusals.
func TestSASLHostile(t *testing.T) {
	challenge := `realm="zk-sasl-md5",nonce="n",charset=utf-8,algorithm=md5-sess`
	digest := func() Exchange { return digestmd5.NewClient("us", "secret") }
	for name, c := range map[string]struct {
		x       Exchange
		answers func(xid int32) []byte // nil: none
		refused string
		want    error
	}{
		"silence": {digest(), nil, "", os.ErrDeadlineExceeded},
		"endless challenges": {
			&talk{last: 1 << 30}, func(xid int32) []byte { return replyFrame(xid, codec.CodeOK, token("x")...) },
			"no end after 20 steps", nil,
		},
		"a wrong proof": {
			digest(), func(xid int32) []byte {
				if xid%2 == 0 {
					return replyFrame(xid, codec.CodeOK, token("rspauth=d388dad90d4bbd760a152321f2143af7")...)
				}
				return replyFrame(xid, codec.CodeOK, token(challenge)...)
			},
			"does not prove", nil,
		},
		"the challenge again": {
			digest(), func(xid int32) []byte { return replyFrame(xid, codec.CodeOK, token(challenge)...) }, "rspauth", nil,
		},
		"a refusal": {digest(), func(xid int32) []byte { return replyFrame(xid, codec.CodeAuthFailed) }, "code -115", nil},
		"nothing": {
			digest(), func(xid int32) []byte { return replyFrame(xid, codec.CodeOK, 0xff, 0xff, 0xff, 0xff) }, "by SASL", nil,
		},
		"another answer":      {digest(), func(xid int32) []byte { return replyFrame(xid-1, 0, token("x")...) }, "", codec.ErrBadFrame},
		"an event":            {digest(), func(int32) []byte { return eventFrame(1, "/a") }, "", codec.ErrBadFrame},
		"half a token":        {digest(), func(xid int32) []byte { return replyFrame(xid, 0, 0, 0, 0, 9) }, "", codec.ErrBadFrame},
		"more than the token": {digest(), func(xid int32) []byte { return replyFrame(xid, 0, 0, 0, 0, 0, 1) }, "", codec.ErrBadFrame},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := saslBench(t, c.x)
				began := time.Now()
				b.greet(t)
				for c.answers != nil {
					synctest.Wait()
					if len(b.got) == 0 {
						break
					}
					_, _ = b.server.Write(c.answers(b.nextXid(t)))
				}
				err := <-b.over
				if took := time.Since(began); took > b.cfg.HandshakeLimit {
					t.Errorf("it took %v", took)
				}
				refusals := fmt.Sprint(b.events.identities)
				if c.refused != "" && (!errors.As(err, new(*SASLError)) || !strings.Contains(refusals, c.refused)) {
					t.Errorf("%v, and the session was told %q, want %q", err, refusals, c.refused)
				}
				if c.refused == "" && (!errors.Is(err, c.want) || refusals != "[]") {
					t.Errorf("%v, and the session was told %q, want %v", err, refusals, c.want)
				}
				if b.Greeted() {
					t.Error("the connection was ready")
				}
			})
		})
	}
}

// A mechanism that cannot begin sends nothing.
func TestSASLNoStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("no ticket")
		for _, err := range []error{why, nil} {
			b := saslBench(t, nil)
			b.cfg.SASL.Start = func(time.Duration) (Exchange, []byte, error) { return nil, nil, err }
			got := b.Serve(codec.Hello{})
			if !errors.As(got, new(*SASLError)) || err != nil && !errors.Is(got, err) || len(b.events.identities) > 0 {
				t.Errorf("%v, %v", got, b.events.identities)
			}
		}
	})
}
