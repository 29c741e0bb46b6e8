package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
)

// News is what one frame from the server says.
type News struct {
	Kind int32 // of a watch's event, or 0
	Path string

	ByLeader bool           // an answer came through the leader,
	Proof    clock.Answered // which proves this
	Zxid     int64
	Since    time.Duration // since the greeting

	Accepted bool   // the server has accepted all identities
	Refused  string // scheme of an identity that was refused
	Expired  bool
	Closed   bool // the server has closed the session, and now ends the connection

	ending
}

type ending struct {
	calls []*Call
	reply Reply
}

// End ends the calls whose answer this is. It must be called, when what the news proves was taken.
func (e ending) End() {
	for _, c := range e.calls {
		c.Done(e.reply)
	}
}

// Next waits for the next frame from the server. An error ends the connection.
func (w *Conn) Next() (News, error) {
	if w.due && !w.buffered() {
		w.due = false
		w.poke()
	}
	frame, err := w.frame()
	if err != nil {
		return News{}, err
	}
	return w.take(frame)
}

// buffered reports whether the next frame has come. Then the writer is woken after it, so that calls leave together.
func (w *Conn) buffered() bool {
	if w.in.Buffered() < 4 {
		return false
	}
	head, _ := w.in.Peek(4)
	n := int(int32(binary.BigEndian.Uint32(head)))
	return n >= 0 && n <= w.in.Buffered()-4
}

// frame returns the next frame without its length, until the next call.
func (w *Conn) frame() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(w.in, head[:]); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(head[:])))
	if n < codec.ReplyHeader || n > codec.MaxFrame {
		return nil, w.badLength(n, head)
	}
	w.mu.Lock()
	w.heardAt = clock.Now()
	w.mu.Unlock()
	body := w.body[:0]
	for len(body) < n { // a server can lie about the length
		have := len(body)
		body = slices.Grow(body, min(n-have, max(have, readBuffer)))
		body = body[:min(n, cap(body))]
		if _, err := io.ReadFull(w.in, body[have:]); err == io.EOF {
			return nil, io.ErrUnexpectedEOF
		} else if err != nil {
			return nil, err
		}
	}
	if cap(body) <= readBuffer {
		w.body = body
	}
	return body, nil
}

// badLength returns why a frame of an impossible length ends the connection. An answer that is too long also ends its
// call, the oldest one in flight: repeated, that would end every connection.
func (w *Conn) badLength(n int, head [4]byte) error {
	if text := string(head[:]); !slices.ContainsFunc(head[:], func(b byte) bool { return b < ' ' || b > '~' }) {
		return fmt.Errorf("%w: it begins with %q, so this is no ZooKeeper server", codec.ErrBadFrame, text)
	}
	if n <= codec.MaxFrame {
		return fmt.Errorf("%w: %d bytes long", codec.ErrBadFrame, n)
	}
	why := fmt.Errorf("%w: an answer of %d bytes, and this client reads at most %d (%w)", ErrTooLong, n, codec.MaxFrame, codec.ErrBadFrame)
	w.mu.Lock()
	var calls []*Call
	if len(w.flight) > 0 && (w.flight[0].Op == codec.OpGetChildren2 || w.flight[0].Op == codec.OpGetData) {
		calls, w.flight = w.flight[0].calls, w.flight[1:]
	}
	w.mu.Unlock()
	ending{calls, Reply{Err: why}}.End()
	return why
}

// leastCode is below all error codes of ZooKeeper, those to come included: in 20 years it got to -128.
const leastCode = -1000

// take takes one frame. Only what was decoded is believed: a malformed answer proves nothing.
func (w *Conn) take(frame []byte) (n News, err error) {
	d := codec.Decoder{Rest: frame}
	xid, zxid, code := d.Int32(), d.Int64(), d.Int32()
	switch xid {
	case codec.XidEvent:
		n.Kind, n.Path, err = codec.DecodeEvent(&d)
		return n, err
	case codec.XidAuth:
		return w.identified(code)
	}
	if code > codec.CodeOK || code < leastCode { // a create with such an answer may have made its node
		return n, fmt.Errorf("%w: error code %d", codec.ErrBadFrame, code)
	}
	i, one, err := w.find(xid, code)
	if err != nil {
		return n, err
	}
	n.reply = Reply{Code: code, Zxid: zxid}
	if code == codec.CodeOK {
		n.reply.Answer, err = codec.DecodeAnswer(one.Op, &d)
		if err == nil && one.check != nil {
			err = one.check(&n.reply.Answer)
		}
		if err != nil {
			return News{}, fmt.Errorf("%w: the answer to %s: %w", codec.ErrBadFrame, codec.OpName(one.Op), err)
		}
	}
	if len(one.calls) > 0 && zxid > 0 { // nobody has seen what heartbeats show
		w.cfg.Seen.Store(zxid)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i == 0 { // nearly always
		w.flight[0] = sending{}
		w.flight = w.flight[1:]
	} else {
		w.flight = slices.Delete(w.flight, i, i+1)
	}
	now := clock.Now()
	var agrees bool
	n.Proof, n.ByLeader, agrees = w.link.Takes(one.Sending, code, now)
	if agrees && now.Before(w.beatAt) {
		w.beatAt = now
	}
	if len(one.calls) > 0 {
		w.flying--
		w.load -= len(one.frame)
	}
	w.due = w.due || agrees || w.nextLocked() != nil
	n.Since, n.Zxid, n.calls = now.Sub(w.greeted), zxid, one.calls
	n.Expired = code == codec.CodeSessionExpired
	n.Closed = code == codec.CodeOK && one.Op == codec.OpClose
	return n, nil
}

// identified takes the answer to an identity. Servers answer them in order.
func (w *Conn) identified(code int32) (n News, err error) {
	switch {
	case len(w.ids) == 0:
		return n, fmt.Errorf("%w: an answer to an identity that was not presented", codec.ErrBadFrame)
	case code != codec.CodeOK:
		n.Refused = w.ids[0].Scheme
		return n, nil
	}
	w.ids = w.ids[1:]
	n.Accepted = len(w.ids) == 0
	return n, nil
}

// find returns the frame in flight that an answer is for. Servers answer in order, but testing/synctest can have
// several frames sent at one instant: of these, any may come first.
func (w *Conn) find(xid, code int32) (int, sending, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, s := range w.flight {
		if s.Xid == xid && (i == 0 || s.At.Equal(w.flight[0].At) || hasty(s.Op, code)) {
			return i, s, nil
		}
	}
	return 0, sending{}, fmt.Errorf("%w: an answer to request %d, which is not due", codec.ErrBadFrame, xid)
}

// hasty reports whether a server may give this answer out of order: it refuses some writes (enableEagerACLCheck), and
// what it does not know, before it queues them.
func hasty(op, code int32) bool {
	switch op {
	case codec.OpCreate, codec.OpCreate2, codec.OpDelete, codec.OpSetData, codec.OpSetACL:
		return code == codec.CodeNoAuth || code == codec.CodeInvalidACL
	case codec.OpCreateContainer, codec.OpCreateTTL:
		return code == codec.CodeUnimplemented
	}
	return false
}
