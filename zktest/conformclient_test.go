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
)

// rawClient speaks the protocol and hides nothing of it.
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

// world is one server and its clients, with what makes its answers comparable
// with another server's.
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

// handshake says how a client connects; zero: as a client should.
type handshake struct {
	badPassword bool
	ahead       bool // has seen the future
	old         bool // does not say whether read-only will do
	timeout     int32
}

// handshake attaches to the client's session, or makes one.
func (c *rawClient) handshake(h handshake) string {
	_ = c.conn.SetDeadline(time.Now().Add(30 * time.Second))
	password := slices.Clone(c.password)
	if h.badPassword && len(password) > 0 {
		password[0]++
	}
	if c.session == 0 {
		password = make([]byte, 16)
	}
	e := newFrame()
	e.int32(0)
	seen := c.seen
	if h.ahead {
		seen = 1 << 60
	}
	e.int64(seen)
	if h.timeout == 0 {
		h.timeout = 30_000
	}
	e.int32(h.timeout)
	e.int64(c.session)
	e.buffer(password)
	if !h.old {
		e.bool(false)
	}
	if _, err := c.conn.Write(sized(e.b)); err != nil {
		return "closed"
	}
	frame, err := readFrame(c.in)
	if err != nil {
		return "closed"
	}
	d := decode(frame)
	version, timeout, session, pw := d.int32(), d.int32(), d.int64(), d.buffer()
	said := fmt.Sprintf("version %d timeout %d password of %d, %d more bytes", version, timeout, len(pw), len(d.rest))
	if session == 0 {
		return "refused: " + said
	}
	if c.session != session {
		c.w.labels[session] = fmt.Sprint("session", len(c.w.labels))
	}
	c.session, c.password = session, slices.Clone(pw)
	return c.w.labels[session] + ": " + said
}

// roundTrip sends a request and returns what comes back: the events before the
// reply, and the reply.
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
	e := newFrame()
	e.int32(xid)
	e.int32(int32(op))
	e.b = append(e.b, body...)
	if _, err := c.conn.Write(sized(e.b)); err != nil {
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
		d := decode(frame)
		got, zxid, err32 := d.int32(), d.int64(), code(d.int32())
		if got == xidNotification {
			events = append(events, fmt.Sprintf("event type %d state %d path %q (%d %d)", d.int32(), d.int32(), d.string(), zxid, err32))
			continue
		}
		c.seen = max(c.seen, zxid)
		reply = fmt.Sprintf("xid %d zxid %s %v: %s", got-xid, c.w.zxid(zxid), err32, c.w.describe(op, err32, d))
		if len(d.rest) > 0 || d.bad {
			reply += fmt.Sprintf(" MORE %x bad %v", d.rest, d.bad)
		}
		return events, reply
	}
}

// zxid is the number in relation to the beginning of the sequence.
func (w *world) zxid(z int64) string {
	if z <= 0 {
		return fmt.Sprint("abs", z)
	}
	return fmt.Sprintf("%+d", z-w.base)
}

// when tells apart only what can be told: never, now, and neither.
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

// describe puts a reply's body in words that two servers can agree on.
func (w *world) describe(op Op, err code, d *decoder) string {
	if err != codeOK {
		return ""
	}
	switch op {
	case OpCreate, OpSync:
		return fmt.Sprintf("path %q", d.string())
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		return fmt.Sprintf("path %q %s", d.string(), w.stat(d))
	case OpSetData, OpSetACL, OpExists:
		return w.stat(d)
	case OpGetData:
		b := d.buffer()
		return fmt.Sprintf("data %q null %v %s", b, b == nil, w.stat(d))
	case OpGetChildren:
		return fmt.Sprintf("children %q", sorted(d.strings()))
	case OpGetChildren2:
		return fmt.Sprintf("children %q %s", sorted(d.strings()), w.stat(d))
	case OpGetEphemerals:
		return fmt.Sprintf("ephemerals %q", sorted(d.strings()))
	case OpGetACL:
		return fmt.Sprintf("acl %v %s", d.acls(), w.stat(d))
	case OpGetAllChildrenNumber, OpAddWatch:
		return fmt.Sprint("number ", d.int32())
	case OpWhoAmI:
		var who []string
		d.list(func() { who = append(who, d.string()+":"+d.string()) })
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

func (w *world) stat(d *decoder) string {
	return fmt.Sprintf("stat{czxid %s mzxid %s ctime %s mtime %s version %d cversion %d aversion %d owner %s length %d children %d pzxid %s}",
		w.zxid(d.int64()), w.zxid(d.int64()), when(d.int64()), when(d.int64()), d.int32(), d.int32(), d.int32(),
		w.owner(d.int64()), d.int32(), d.int32(), w.zxid(d.int64()))
}

func (w *world) multi(d *decoder) string {
	var b strings.Builder
	for !d.bad {
		op, done, err := Op(d.int32()), d.bool(), code(d.int32())
		if done {
			fmt.Fprintf(&b, "end %d %d", op, err)
			break
		}
		if op == opError {
			fmt.Fprintf(&b, "[error %d %v] ", err, code(d.int32()))
			continue
		}
		fmt.Fprintf(&b, "[%v %d %s] ", op, err, w.describe(op, err, d))
	}
	return b.String()
}
