package zktest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// A rawClient speaks the protocol frame by frame.
type rawClient struct {
	w        *world
	label    string
	conn     net.Conn
	in       *bufio.Reader
	xid      int32
	session  int64
	password []byte
	seen     int64
}

// A world is a server and its clients. It describes the server's answers so that they can be compared
// with those of another server.
type world struct {
	t       testing.TB
	dial    func() (net.Conn, error)
	clients []*rawClient
	base    int64            // the zxid before the sequence
	labels  map[int64]string // of sessions
}

func newWorld(t testing.TB, dial func() (net.Conn, error)) *world {
	w := &world{t: t, dial: dial, labels: make(map[int64]string)}
	t.Cleanup(w.end)
	return w
}

func (w *world) end() {
	for _, c := range w.clients {
		_ = c.conn.Close()
	}
}

// join adds a client with a new session.
func (w *world) join() *rawClient {
	c := &rawClient{w: w, label: fmt.Sprint("client", len(w.clients))}
	w.clients = append(w.clients, c)
	c.open()
	c.handshake(handshake{})
	return c
}

func (c *rawClient) open() {
	conn, err := c.w.dial()
	if err != nil {
		c.w.t.Fatal(err)
	}
	c.conn, c.in = conn, bufio.NewReader(conn)
}

// A handshake says what is wrong with a client's handshake. The zero value is a correct one.
type handshake struct {
	badPassword bool
	ahead       bool // has seen the future
	old         bool // does not say whether read-only will do
	timeout     int32
}

// handshake attaches to the client's session, or creates one.
func (c *rawClient) handshake(h handshake) string {
	_ = c.conn.SetDeadline(time.Now().Add(30 * time.Second))
	password := slices.Clone(c.password)
	if h.badPassword && len(password) > 0 {
		password[0]++
	}
	if c.session == 0 {
		password = make([]byte, 16)
	}
	e := znode.NewFrame()
	e.Int32(0)
	seen := c.seen
	if h.ahead {
		seen = 1 << 60
	}
	e.Int64(seen)
	if h.timeout == 0 {
		h.timeout = 30_000
	}
	e.Int32(h.timeout)
	e.Int64(c.session)
	e.Buffer(password)
	if !h.old {
		e.Bool(false)
	}
	if _, err := c.conn.Write(e.Frame()); err != nil {
		return "closed"
	}
	frame, err := readFrame(c.in)
	if err != nil {
		return "closed"
	}
	d := znode.Decode(frame)
	version, timeout, session, pw := d.Int32(), d.Int32(), d.Int64(), d.Buffer()
	said := fmt.Sprintf("version %d timeout %d password of %d, %d more bytes", version, timeout, len(pw), len(d.Rest))
	if session == 0 {
		return "refused: " + said
	}
	if c.session != session {
		c.w.labels[session] = fmt.Sprint("session", len(c.w.labels))
	}
	c.session, c.password = session, slices.Clone(pw)
	return c.w.labels[session] + ": " + said
}

// roundTrip sends a request. It returns the watch events that arrive before the reply, and the reply.
func (c *rawClient) roundTrip(op Op, body []byte) (events []string, reply string) {
	_ = c.conn.SetDeadline(time.Now().Add(30 * time.Second))
	c.xid++
	xid := c.xid
	switch op {
	case OpPing:
		xid = -2
	case OpAuth:
		xid = -4
	case OpSetWatches, OpSetWatches2:
		xid = -8
	}
	e := znode.NewFrame()
	e.Int32(xid)
	e.Int32(int32(op))
	e.B = append(e.B, body...)
	if _, err := c.conn.Write(e.Frame()); err != nil {
		return nil, "closed"
	}
	for {
		frame, err := readFrame(c.in)
		if err != nil {
			if !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
				c.w.t.Errorf("%s, %v: %v", c.label, op, err)
			}
			return events, "closed"
		}
		d := znode.Decode(frame)
		got, zxid, err32 := d.Int32(), d.Int64(), znode.Code(d.Int32())
		if got == codec.XidEvent {
			events = append(events, fmt.Sprintf("event type %d state %d path %q (%s %d)", d.Int32(), d.Int32(), d.String(), c.w.zxid(zxid), err32))
			continue
		}
		c.seen = max(c.seen, zxid)
		reply = fmt.Sprintf("xid %d zxid %s %v: %s", got-xid, c.w.zxid(zxid), err32, c.w.describe(op, err32, d))
		if len(d.Rest) > 0 || d.Bad {
			reply += fmt.Sprintf(" MORE %x bad %v", d.Rest, d.Bad)
		}
		return events, reply
	}
}

// zxid describes a transaction number, relative to the beginning of the sequence.
func (w *world) zxid(z int64) string {
	if z <= 0 {
		return fmt.Sprint("abs", z)
	}
	return fmt.Sprintf("%+d", z-w.base)
}

// when describes a time as never, now, or neither, because two servers do not agree on more.
func when(millis int64) string {
	switch d := time.Since(time.UnixMilli(millis)); {
	case millis == 0:
		return "never"
	case d.Abs() < 5*time.Minute:
		return "now"
	}
	return fmt.Sprint(millis)
}

func (w *world) owner(id int64) string {
	if label, ok := w.labels[id]; ok {
		return label
	}
	return fmt.Sprintf("%#x", uint64(id))
}

// describe describes a reply's body so that two servers that behave alike give the same text.
func (w *world) describe(op Op, err znode.Code, d *znode.Decoder) string {
	if err != znode.CodeOK {
		return ""
	}
	switch op {
	case OpCreate, OpSync:
		return fmt.Sprintf("path %q", d.String())
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		return fmt.Sprintf("path %q %s", d.String(), w.stat(d))
	case OpSetData, OpSetACL, OpExists:
		return w.stat(d)
	case OpGetData:
		b := d.Buffer()
		return fmt.Sprintf("data %q null %v %s", b, b == nil, w.stat(d))
	case OpGetChildren:
		return fmt.Sprintf("children %q", sorted(d.Strings()))
	case OpGetChildren2:
		return fmt.Sprintf("children %q %s", sorted(d.Strings()), w.stat(d))
	case OpGetEphemerals:
		return fmt.Sprintf("ephemerals %q", sorted(d.Strings()))
	case OpGetACL:
		return fmt.Sprintf("acl %v %s", d.ACL(), w.stat(d))
	case OpGetAllChildrenNumber, OpAddWatch:
		return fmt.Sprint("number ", d.Int32())
	case OpWhoAmI:
		var who []string
		d.List(func() { who = append(who, d.String()+":"+d.String()) })
		return fmt.Sprint(sorted(who))
	case OpMulti, OpMultiRead:
		return w.multi(d)
	}
	return ""
}

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}

func (w *world) stat(d *znode.Decoder) string {
	return fmt.Sprintf("stat{czxid %s mzxid %s ctime %s mtime %s version %d cversion %d aversion %d owner %s length %d children %d pzxid %s}",
		w.zxid(d.Int64()), w.zxid(d.Int64()), when(d.Int64()), when(d.Int64()), d.Int32(), d.Int32(), d.Int32(),
		w.owner(d.Int64()), d.Int32(), d.Int32(), w.zxid(d.Int64()))
}

func (w *world) multi(d *znode.Decoder) string {
	var b strings.Builder
	for !d.Bad {
		op, done, err := Op(d.Int32()), d.Bool(), znode.Code(d.Int32())
		if done {
			fmt.Fprintf(&b, "end %d %d", op, err)
			break
		}
		if op == codec.OpError {
			fmt.Fprintf(&b, "[error %d %v] ", err, znode.Code(d.Int32()))
			continue
		}
		fmt.Fprintf(&b, "[%v %d %s] ", op, err, w.describe(op, err, d))
	}
	return b.String()
}

// connectFrame returns a client's first frame.
func connectFrame(session int64, password []byte, timeoutMillis int32) []byte {
	return codec.Hello{Session: session, Password: password, TimeoutMillis: timeoutMillis}.Frame()
}
