package wire

import (
	"encoding/binary"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
)

// bench is a connection with a scripted server at its other end. It lives in a synctest bubble, so that its limits take
// no time and send times are exact.
type bench struct {
	*Conn
	t      *testing.T
	cfg    Config
	server net.Conn
	got    chan []byte // the frames that the server has read after the handshake
	news   chan News   // what Next has returned
	shook  chan error  // what Greet or Open has returned
	over   chan error  // what Close has returned
}

// testLimit is the limit of the handshake.
const testLimit = time.Second

func newBench(t *testing.T, set func(*Config)) *bench {
	t.Helper()
	near, far := net.Pipe()
	b := &bench{t: t, server: far, got: make(chan []byte, 10000), news: make(chan News, 1000), shook: make(chan error, 1), over: make(chan error, 1)}
	b.cfg = testConfig()
	if set != nil {
		set(&b.cfg)
	}
	b.Conn = New(near, b.cfg)
	t.Cleanup(func() { b.Cut(net.ErrClosed); far.Close(); b.Forsake() })
	return b
}

func testConfig() Config {
	return Config{
		Hello: codec.Hello{TimeoutMillis: 6000}, Seen: new(atomic.Int64), Owned: new(atomic.Int64), Limit: testLimit,
		Half: func(timeout time.Duration) time.Duration { return timeout / 4 }, Clock: clock.New(clock.Now()),
	}
}

// serve does what a session does with its connection.
func (b *bench) serve() {
	_, _, err := b.Greet()
	if err == nil {
		err = b.Open()
	}
	b.shook <- err
	for err == nil {
		var news News
		if news, err = b.Next(); err == nil {
			select {
			case b.news <- news:
			default: // nobody asks for so many
			}
			news.End()
		}
	}
	b.over <- b.Close(err)
}

// start begins to serve, and takes the handshake.
func (b *bench) start() {
	b.t.Helper()
	go b.serve()
	if _, err := codec.ReadFrame(b.server, codec.MaxFrame); err != nil {
		b.t.Fatal(err)
	}
}

// listen takes what arrives at the server.
func (b *bench) listen() {
	for {
		f, err := codec.ReadFrame(b.server, codec.MaxFrame)
		if err != nil {
			return
		}
		b.got <- f
	}
}

// greet makes the handshake, and begins to listen.
func (b *bench) greet() {
	b.t.Helper()
	b.start()
	b.say(greetingFrame(42, 6000))
	go b.listen()
	synctest.Wait()
}

// greeted runs a test in a bubble, with a connection behind its handshake. set may be nil.
func greeted(t *testing.T, set func(*Config), f func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, set)
		b.greet()
		f(t, b)
	})
}

// say sends something from the server.
func (b *bench) say(frame []byte) {
	b.t.Helper()
	if _, err := b.server.Write(frame); err != nil {
		b.t.Errorf("the server's write: %v", err)
	}
	synctest.Wait()
}

// next returns the next frame at the server. Heartbeats are frames too.
func (b *bench) next() []byte {
	b.t.Helper()
	synctest.Wait()
	select {
	case f := <-b.got:
		return f
	default:
		b.t.Fatal("nothing has come to the server")
		return nil
	}
}

// nothing fails if something has come to the server.
func (b *bench) nothing() {
	b.t.Helper()
	synctest.Wait()
	select {
	case f := <-b.got:
		b.t.Fatalf("%s has come to the server", codec.OpName(codec.Op(f)))
	default:
	}
}

// told returns the next news.
func (b *bench) told() News {
	b.t.Helper()
	synctest.Wait()
	select {
	case n := <-b.news:
		return n
	default:
		b.t.Fatal("no news")
		return News{}
	}
}

// ended returns why the connection has ended.
func (b *bench) ended() error {
	b.t.Helper()
	synctest.Wait()
	select {
	case err := <-b.over:
		return err
	default:
		b.t.Fatal("the connection goes on")
		return nil
	}
}

// frames returns what has come to the server since the last call.
func (b *bench) frames() (all [][]byte) {
	synctest.Wait()
	for len(b.got) > 0 {
		all = append(all, <-b.got)
	}
	return all
}

// ops returns the kinds of the frames that have come to the server since the last call.
func (b *bench) ops() (ops []int32) {
	for _, f := range b.frames() {
		ops = append(ops, codec.Op(f))
	}
	return ops
}

// proofs returns the news so far that came through the leader.
func (b *bench) proofs() (all []News) {
	synctest.Wait()
	for len(b.news) > 0 {
		if n := <-b.news; n.ByLeader {
			all = append(all, n)
		}
	}
	return all
}

// ask sends a call whose reply nobody wants.
func (b *bench) ask(op int32, path string) {
	c, _ := call(op, path)
	b.Start(c)
	synctest.Wait()
}

// call returns a call, and where its reply goes.
func call(op int32, path string) (*Call, chan Reply) {
	replies := make(chan Reply, 1)
	e := codec.NewFrame()
	e.Int32(0)
	e.Int32(op)
	e.String(path)
	return &Call{Frame: e.Frame(), Done: func(r Reply) { replies <- r }}, replies
}

// ended returns the reply to a call, or nil if there is none yet.
func ended(replies chan Reply) *Reply {
	synctest.Wait()
	select {
	case r := <-replies:
		return &r
	default:
		return nil
	}
}

// greetingFrame is the answer of a server to a handshake.
func greetingFrame(session int64, timeoutMillis int32) []byte {
	e := codec.NewFrame()
	e.Int32(0) // protocol version
	e.Int32(timeoutMillis)
	e.Int64(session)
	e.Buffer([]byte("0123456789abcdef"))
	e.Bool(false) // not read-only
	return e.Frame()
}

// testZxid is the transaction of the answers of the scripted server.
const testZxid = 99

func replyFrame(xid, code int32, body ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(codec.ReplyHeader+len(body)))
	b = binary.BigEndian.AppendUint32(b, uint32(xid))
	b = binary.BigEndian.AppendUint64(b, testZxid)
	return append(binary.BigEndian.AppendUint32(b, uint32(code)), body...)
}

func eventFrame(kind int32, path string) []byte {
	return replyFrame(codec.XidEvent, 0, append(numbers(kind, 3), sized(path)...)...)
}

// numbers makes bytes of 32-bit numbers.
func numbers(ns ...int32) []byte {
	var b []byte
	for _, n := range ns {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// result is the head of one result of a multi.
func result(op int32, last byte) []byte { return slices.Concat(numbers(op), []byte{last}, numbers(0)) }

var aStat = make([]byte, 68)

// bodies has a well-formed answer to each kind of request that the tests send.
var bodies = map[int32][]byte{
	codec.OpCreate:       sized("/a"),
	codec.OpExists:       aStat,
	codec.OpSync:         sized("/"),
	codec.OpGetData:      append(sized("data"), aStat...),
	codec.OpGetChildren2: append(append(numbers(2), append(sized("x"), sized("y")...)...), aStat...),
	codec.OpMulti:        slices.Concat(result(codec.OpCheck, 0), result(-1, 1)),
}

// answerTo is a well-formed answer to a frame.
func answerTo(f []byte) []byte { return replyFrame(codec.Xid(f), codec.CodeOK, bodies[codec.Op(f)]...) }

// sized returns a string with its length in front.
func sized(s string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...)
}
