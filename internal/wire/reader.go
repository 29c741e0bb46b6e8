package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/outbox"
)

// ErrNoSession means that the server does not know the session that was asked for.
var ErrNoSession = errors.New("the server has no such session")

// frame returns the next frame without its length. The next call overwrites it.
func (w *Conn) frame() ([]byte, error) {
	var head [4]byte
	if err := w.read(head[:], io.EOF); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(head[:])))
	if n < codec.ReplyHeader || n > codec.MaxFrame {
		return nil, w.explain(badLength(n))
	}
	w.mu.Lock()
	w.lastHeard = clock.Now()
	w.mu.Unlock()
	body := w.body[:0]
	for len(body) < n { // room is made as bytes come: a server can lie about the length
		have := len(body)
		body = slices.Grow(body, min(n-have, max(have, keptBody)))
		body = body[:min(n, cap(body))]
		if err := w.read(body[have:], io.ErrUnexpectedEOF); err != nil {
			return nil, err
		}
	}
	if cap(body) <= keptBody {
		w.body = body
	}
	return body, nil
}

// read fills b. end is the error if the stream ends before the first byte. If read fails, it has ended the connection.
func (w *Conn) read(b []byte, end error) error {
	_, err := io.ReadFull(w.in, b)
	if err == io.EOF {
		err = end
	}
	if err != nil {
		w.lose(err)
	}
	return err
}

// keptBody is up to which length the memory of a frame serves the next one too.
const keptBody = 4 << 10

// explain returns why a frame of an impossible length ends the connection. If it is an answer that is too long for this
// client, it ends the call. A server answers in order, so it is the answer to the oldest request in flight, if that is a
// read. Text is no answer.
func (w *Conn) explain(bad badLength) error {
	if bad <= codec.MaxFrame || bad.text() != "" {
		return bad
	}
	w.mu.Lock()
	oldest, ok := w.flight.oldest()
	w.mu.Unlock()
	if !ok || oldest.Op != codec.OpGetChildren2 && oldest.Op != codec.OpGetData {
		return bad
	}
	why := longAnswer(bad)
	if one, ok := w.out.Find(oldest.Xid); ok {
		w.out.Answered(clock.Now(), oldest.Xid, 0)
		one.Done(outbox.Reply{Err: why})
	}
	return why
}

// longAnswer is the error for an answer of so many bytes.
type longAnswer int

func (n longAnswer) Error() string {
	return fmt.Sprintf("too long: an answer of %d bytes, and this client reads at most %d", int(n), codec.MaxFrame)
}

func (n longAnswer) Is(target error) bool {
	return target == outbox.ErrTooLong || target == codec.ErrBadFrame
}

// badLength is an ErrBadFrame for a frame of that length.
type badLength int

func (n badLength) Error() string {
	if text := n.text(); text != "" {
		return fmt.Sprintf("%v: it begins with %q, so this is no ZooKeeper server", codec.ErrBadFrame, text)
	}
	return fmt.Sprintf("%v: %d bytes long", codec.ErrBadFrame, int(n))
}

func (n badLength) Is(target error) bool { return target == codec.ErrBadFrame }

// text returns the four bytes of the length if they are text, as of a server that speaks HTTP, SSH or Redis's protocol.
func (n badLength) text() string {
	b := binary.BigEndian.AppendUint32(nil, uint32(n))
	for _, c := range b {
		if c < ' ' || c > '~' {
			return ""
		}
	}
	return string(b)
}
