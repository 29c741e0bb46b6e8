package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Sizes of what servers send.
const (
	frameHead    = 40 // enough for a ConnectResponse with its password
	replyHeader  = 16 // xid, zxid, error code
	connectReply = 36 // version, timeout, session, password
)

// ErrBadFrame means that a server has sent something that no server sends.
var ErrBadFrame = errors.New("malformed frame from the server")

// badLength is an ErrBadFrame for a frame of that length.
type badLength int

func (n badLength) Error() string {
	if text := n.text(); text != "" {
		return fmt.Sprintf("%v: it begins with %q, so this is no ZooKeeper server", ErrBadFrame, text)
	}
	return fmt.Sprintf("%v: %d bytes long", ErrBadFrame, int(n))
}

func (n badLength) Is(target error) bool { return target == ErrBadFrame }

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

// frames finds the frames in a stream of bytes that comes in pieces. It passes on the head of
// each frame, checks its body, and says when the frame is whole.
type frames struct {
	buf  [4 + frameHead]byte // length and head of the present frame
	have int                 // bytes in buf
	body body                // the part of the present frame that does not fit buf

	at   int64  // how many bytes have come
	keep bool   // the body of the present frame is wanted
	kept []byte // what has come of it
}

// taken returns the body of a frame that is whole, if it was wanted.
func (f *frames) taken() []byte {
	b := f.kept
	f.keep, f.kept = false, nil
	return b
}

// feed takes the next bytes. It calls head for each frame whose head is complete. head returns
// what the body behind a reply's header must consist of. The slice passed to head is valid only
// during the call. feed calls whole after the last byte of a well-formed frame. It returns an error
// before the last byte of a malformed frame is passed on.
func (f *frames) feed(p []byte, head func([]byte) ([]field, error), whole func()) error {
	for len(p) > 0 {
		if f.body.left > 0 {
			rest, err := f.body.feed(p)
			if err != nil {
				return err
			}
			n := len(p) - len(rest)
			if f.keep {
				f.kept = append(f.kept, p[:n]...)
			}
			f.at += int64(n)
			p = rest
			if f.body.left == 0 {
				whole()
			}
			continue
		}
		want, err := f.wanted()
		if err != nil {
			return err
		}
		n := copy(f.buf[f.have:want], p)
		f.have += n
		f.at += int64(n)
		p = p[n:]
		if want == 4 && f.have == 4 {
			// Check the length now, not at the next byte: zk.Conn makes room for a frame of
			// this length before it reads on.
			if _, err := f.wanted(); err != nil {
				return err
			}
		}
		if f.have < want || want == 4 {
			continue
		}
		if err := f.complete(f.buf[4:want], head); err != nil {
			return err
		}
		f.have = 0
		if f.body.left == 0 {
			whole()
		}
	}
	return nil
}

// complete takes the head of a frame.
func (f *frames) complete(start []byte, head func([]byte) ([]field, error)) error {
	fields, err := head(start)
	if err != nil {
		return err
	}
	if err := f.body.begin(fields, f.length()-replyHeader); err != nil {
		return err
	}
	if f.keep {
		f.kept = append(make([]byte, 0, f.length()-replyHeader), start[replyHeader:]...)
	}
	_, err = f.body.feed(start[replyHeader:])
	return err
}

// wanted returns how many bytes of the present frame buf has to hold: first its length, then also
// its head.
func (f *frames) wanted() (int, error) {
	if f.have < 4 {
		return 4, nil
	}
	if n := f.length(); n < replyHeader || n > MaxFrame {
		return 0, badLength(n)
	}
	return 4 + min(f.length(), frameHead), nil
}

func (f *frames) length() int { return int(int32(binary.BigEndian.Uint32(f.buf[:4]))) }

func xidOf(frame []byte) int32 { return int32(binary.BigEndian.Uint32(frame[4:])) }
func opOf(frame []byte) int32  { return int32(binary.BigEndian.Uint32(frame[8:])) }

func zxidOf(head []byte) int64 { return int64(binary.BigEndian.Uint64(head[4:])) }

// replyOf returns the request number and error code in the header of a reply.
func replyOf(head []byte) (xid, code int32) {
	return int32(binary.BigEndian.Uint32(head)), int32(binary.BigEndian.Uint32(head[12:]))
}

// Greeting is a server's answer to a [Hello].
type Greeting struct {
	TimeoutMillis int32
	Session       int64 // 0: the session has expired
	Password      [PasswordLength]byte
}

// Timeout is the session timeout that the server grants.
func (g Greeting) Timeout() time.Duration { return time.Duration(g.TimeoutMillis) * time.Millisecond }

func parseGreeting(head []byte) (Greeting, error) {
	if len(head) < connectReply {
		return Greeting{}, fmt.Errorf("%w: handshake of %d bytes", ErrBadFrame, len(head))
	}
	g := Greeting{
		TimeoutMillis: int32(binary.BigEndian.Uint32(head[4:])),
		Session:       int64(binary.BigEndian.Uint64(head[8:])),
	}
	copy(g.Password[:], head[20:])
	if n := int32(binary.BigEndian.Uint32(head[16:])); n != PasswordLength {
		return Greeting{}, fmt.Errorf("%w: password of %d bytes", ErrBadFrame, n)
	}
	if g.Session != 0 && g.TimeoutMillis <= 0 {
		return Greeting{}, fmt.Errorf("%w: session timeout of %d ms", ErrBadFrame, g.TimeoutMillis)
	}
	return g, nil
}
