// Package visit makes a connection to a ZooKeeper server that does one thing and ends: it closes a session, or learns what
// a server grants. Package session keeps one session, so the command speaks this little of the protocol itself.
package visit

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Frames of ZooKeeper's protocol: a length, and that many bytes. All numbers are big-endian.
const (
	opAuth  = 100
	opClose = -11

	numberOfAuth  = -4 // of an identity, and of the answer to one
	numberOfVisit = 1  // of the request to close

	codeOK             = 0
	codeSessionExpired = -112

	longestAnswer = 64 << 10
)

// PasswordLength is the length of the password that a server issues with each session.
const PasswordLength = 16

// GreetingLength is the length of a greeting up to the end of its password. Most servers say one byte more.
const GreetingLength = 4 + 4 + 8 + 4 + PasswordLength

// Identity is what a client presents to the servers, as session.WithAuth does.
type Identity struct {
	Scheme     string
	Credential []byte
}

// Hello is the handshake of a client.
type Hello struct {
	Timeout  time.Duration // the session timeout to ask for
	Session  int64         // 0 asks for a new session
	Password []byte        // of the session; nil for a new one
}

// Frame returns the handshake as a frame.
func (h Hello) Frame() []byte {
	password := h.Password
	if password == nil {
		password = make([]byte, PasswordLength)
	}
	b := binary.BigEndian.AppendUint32(nil, 0) // the version of the protocol
	b = binary.BigEndian.AppendUint64(b, 0)    // the last transaction that the client has seen
	b = binary.BigEndian.AppendUint32(b, uint32(h.Timeout.Milliseconds()))
	b = binary.BigEndian.AppendUint64(b, uint64(h.Session))
	b = appendBytes(b, password)
	return appendBytes(nil, append(b, 0)) // a server that is read-only does not do
}

func request(number, op int32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(number)), uint32(op))
}

// CloseFrame returns a request to close the session of the connection.
func CloseFrame() []byte { return appendBytes(nil, request(numberOfVisit, opClose)) }

func appendBytes(to, b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(to, uint32(len(b))), b...)
}

// ReadFrame reads a frame, without its length.
func ReadFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > longestAnswer {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}

// Outcome is the result of a visit.
type Outcome struct {
	Timeout time.Duration // that the server grants; 0: it has not answered
	Gone    bool          // the server says that the session is gone
}

// Close closes the session that a handshake asks for. It sends the handshake, the identities and
// the request to close together, without waiting for answers. So it closes a session even if no answer gets through, and it
// never prolongs a session's life without ending it. It returns when the server has confirmed that the session is closed, or
// the connection has ended. The caller has to bound the time.
func Close(c net.Conn, h Hello, identities ...Identity) (out Outcome, err error) {
	send := h.Frame()
	for _, i := range identities {
		b := append(request(numberOfAuth, opAuth), 0, 0, 0, 0) // always
		send = appendBytes(send, appendBytes(appendBytes(b, []byte(i.Scheme)), i.Credential))
	}
	if _, err := c.Write(append(send, CloseFrame()...)); err != nil {
		return out, err
	}
	in := bufio.NewReader(c)
	b, err := ReadFrame(in)
	switch {
	case err != nil:
		return out, err
	case len(b) < GreetingLength || binary.BigEndian.Uint32(b[16:]) != PasswordLength:
		return out, errors.New("a frame that is not of the protocol")
	}
	out.Timeout = time.Duration(binary.BigEndian.Uint32(b[4:])) * time.Millisecond
	session := int64(binary.BigEndian.Uint64(b[8:]))
	out.Gone = session == 0 // it has expired
	if h.Session != 0 && session != 0 && session != h.Session {
		return out, errors.New("another session answers")
	}
	for !out.Gone {
		b, err := ReadFrame(in)
		if err != nil || len(b) < 16 {
			return out, err
		}
		number, code := int32(binary.BigEndian.Uint32(b)), int32(binary.BigEndian.Uint32(b[12:]))
		out.Gone = number == numberOfVisit && (code == codeOK || code == codeSessionExpired)
	}
	return out, nil
}
