package wire

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

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

// mechanism returns a change of a Config: it has a mechanism whose exchanges are x.
func mechanism(x Exchange, limit time.Duration) func(*Config) {
	return func(c *Config) {
		c.Limit, c.Host, c.Identities = limit, "zk1", twoIdentities
		c.Owned.Store(1)
		c.SASL = &SASL{Name: "TEST", Start: func(_ context.Context, host string) (Exchange, []byte, error) {
			if host != "zk1" {
				return nil, nil, errors.New("another host")
			}
			return x, nil, nil
		}}
	}
}

// step returns the number of the next frame, which must be a step of SASL.
func (b *bench) step() int32 {
	b.t.Helper()
	f := b.next()
	if codec.Op(f) != codec.OpSASL {
		b.t.Fatalf("%s has come, want a step of SASL", codec.OpName(codec.Op(f)))
	}
	return codec.Xid(f)
}

// TestSASLComesFirst makes the exchange right behind the greeting. Identities, heartbeats and requests wait for its end, and
// the clock takes nothing from its answers: a write behind a long exchange proves what the handshake does.
func TestSASLComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, mechanism(&talk{last: 3}, time.Minute))
		hello := time.Now()
		b.start()
		time.Sleep(time.Second)
		b.say(greetingFrame(42, 6000))
		go b.listen()
		b.ask(codec.OpSync, "/a")
		for range 3 {
			time.Sleep(10 * time.Second)
			xid := b.step()
			if b.nothing(); b.Greeted() {
				t.Error("open before the end of the exchange")
			}
			b.say(replyFrame(xid, codec.CodeOK, sized("x")...))
		}
		all := b.frames()
		var ops []int32
		for _, f := range all {
			ops = append(ops, codec.Op(f))
		}
		if diff := gocmp.Diff([]int32{codec.OpAuth, codec.OpAuth, codec.OpMulti, codec.OpSync}, ops[:4]); diff != "" || !b.Greeted() {
			t.Errorf("open %t (-want +got):\n%s", b.Greeted(), diff)
		}
		if len(b.news) > 0 {
			t.Errorf("news: %+v", <-b.news)
		}
		b.say(replyFrame(codec.Xid(all[2]), codec.CodeNoNode))
		if n := b.told(); !n.Proof.Quorum || n.Proof.Touched.After(hello) {
			t.Errorf("the write proves %+v, want what was so at %v", n.Proof, hello)
		}
	})
}

// TestSASLHostile ends an exchange in time, whatever a server does. Only refusals are SASLErrors.
func TestSASLHostile(t *testing.T) {
	challenge := `realm="zk-sasl-md5",nonce="n",charset=utf-8,algorithm=md5-sess`
	digest := func() Exchange { return digestmd5.NewClient("us", "secret") }
	ok := func(text string) func(int32) []byte {
		return func(xid int32) []byte { return replyFrame(xid, codec.CodeOK, sized(text)...) }
	}
	for name, c := range map[string]struct {
		x       Exchange
		answers func(xid int32) []byte // nil: none
		refused string
		want    error
	}{
		"silence":            {digest(), nil, "", os.ErrDeadlineExceeded},
		"endless challenges": {&talk{last: 1 << 30}, ok("x"), "no end after 20 steps", nil},
		"a wrong proof": {
			digest(), func(xid int32) []byte {
				if xid%2 == 0 {
					return ok("rspauth=d388dad90d4bbd760a152321f2143af7")(xid)
				}
				return ok(challenge)(xid)
			},
			"does not prove", nil,
		},
		"the challenge again": {digest(), ok(challenge), "does not prove", nil},
		"a refusal":           {digest(), func(xid int32) []byte { return replyFrame(xid, codec.CodeAuthFailed) }, "code -115", nil},
		"nothing": {
			digest(), func(xid int32) []byte { return replyFrame(xid, codec.CodeOK, 0xff, 0xff, 0xff, 0xff) }, "by TEST", nil,
		},
		"another answer":         {digest(), func(xid int32) []byte { return replyFrame(xid-1, 0, sized("x")...) }, "", codec.ErrBadFrame},
		"an event":               {digest(), func(int32) []byte { return eventFrame(1, "/a") }, "", codec.ErrBadFrame},
		"half a token":           {digest(), func(xid int32) []byte { return replyFrame(xid, 0, 0, 0, 0, 9) }, "", codec.ErrBadFrame},
		"more than the token":    {digest(), func(xid int32) []byte { return replyFrame(xid, 0, 0, 0, 0, 0, 1) }, "", codec.ErrBadFrame},
		"a mechanism that hangs": {hangs{}, ok("x"), "", os.ErrDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer hangs{}.reset()()
				b := newBench(t, mechanism(c.x, testLimit))
				began := time.Now()
				b.greet()
				steps := 0
				for ; c.answers != nil; steps++ {
					synctest.Wait()
					if len(b.got) == 0 {
						break
					}
					_, _ = b.server.Write(c.answers(b.step()))
				}
				err := <-b.shook
				<-b.over
				if took := time.Since(began); took > testLimit || b.Greeted() || steps > mostSteps {
					t.Errorf("it took %v and %d steps, open %v", took, steps, b.Greeted())
				}
				isRefusal := errors.As(err, new(*SASLError))
				if isRefusal != (c.refused != "") || !strings.Contains(err.Error(), c.refused) || c.want != nil && !errors.Is(cmp.Or(b.Err(), err), c.want) {
					t.Errorf("%v, want %v %q", err, c.want, c.refused)
				}
			})
		})
	}
}

// hangs is an exchange whose functions do not return before the end of the test.
type hangs struct{}

var hanging chan struct{}

func (hangs) reset() (end func()) {
	hanging = make(chan struct{})
	return func() { close(hanging) }
}

func (hangs) Challenge([]byte) ([]byte, bool, error) { <-hanging; return nil, true, nil }

// TestSASLStart sends nothing if a mechanism cannot begin, takes too long, or has not returned from earlier calls. Cut does
// not wait for it.
func TestSASLStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("no ticket")
		for _, want := range []error{why, nil} {
			b := newBench(t, mechanism(nil, testLimit))
			b.cfg.SASL.Start = func(context.Context, string) (Exchange, []byte, error) { return nil, nil, want }
			_, _, err := b.Greet()
			if refused := errors.As(err, new(*SASLError)); err == nil || refused || want != nil && !errors.Is(err, want) {
				t.Errorf("%v, want %v; a refusal: %v", err, want, refused)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		defer hangs{}.reset()()
		deaf := &SASL{Name: "DEAF", Start: func(context.Context, string) (Exchange, []byte, error) { <-hanging; return nil, nil, nil }}
		cut := errors.New("cut")
		for i := range mostDeaf + 1 {
			b := newBench(t, func(c *Config) { c.SASL = deaf })
			began := time.Now()
			if i == 1 {
				time.AfterFunc(time.Millisecond, func() { b.Cut(cut) })
			}
			_, _, err := b.Greet()
			took := time.Since(began)
			switch {
			case i == 1 && (!errors.Is(err, cut) || took != time.Millisecond),
				i != 1 && i < mostDeaf && (!errors.Is(err, context.DeadlineExceeded) || took != testLimit/2),
				i == mostDeaf && (!strings.Contains(err.Error(), "has not returned") || took != 0):
				t.Errorf("start %d: %v after %v", i, err, took)
			}
		}
	})
}
