package visit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// Frames of ZooKeeper's protocol: a length, and that many bytes. All numbers are big-endian.

// Numbers of the protocol.
const (
	opAuth  = 100
	opSASL  = 102
	opClose = -11

	numberOfAuth  = -4 // of an identity, and of the answer to one
	numberOfVisit = 1  // of everything else that a visit sends

	codeOK             = 0
	codeSessionExpired = -112
)

// PasswordLength is the length of the password that a server issues with each session.
const PasswordLength = 16

// headLength is the length of the number, the transaction and the code of an answer.
const headLength = 4 + 8 + 4

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
	return frame(append(b, 0)) // a server that is read-only does not do
}

// Identity is what a client presents to the servers, as session.WithAuth does.
type Identity struct {
	Scheme     string
	Credential []byte
}

func (i Identity) frame() []byte {
	b := request(numberOfAuth, opAuth)
	b = binary.BigEndian.AppendUint32(b, 0) // always
	b = appendBytes(b, []byte(i.Scheme))
	return frame(appendBytes(b, i.Credential))
}

// saslFrame is a step of a client in an exchange of SASL.
func saslFrame(token []byte) []byte { return frame(appendBytes(request(numberOfVisit, opSASL), token)) }

// closeFrame closes the session of the connection.
func closeFrame() []byte { return frame(request(numberOfVisit, opClose)) }

func request(number, op int32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(number)), uint32(op))
}

func appendBytes(to, b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(to, uint32(len(b))), b...)
}

func frame(body []byte) []byte { return appendBytes(nil, body) }

// ReadFrame reads a frame, without its length, which is most at most.
func ReadFrame(r io.Reader, most int) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if int64(n) > int64(most) {
		return nil, fmt.Errorf("a frame of %d bytes, more than %d", n, most)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}

var errFrame = errors.New("a frame that is not of the protocol")

// answer is the answer to a request.
type answer struct {
	number, code int32
	body         []byte
}

func parseAnswer(b []byte) (answer, error) {
	if len(b) < headLength {
		return answer{}, errFrame
	}
	return answer{
		number: int32(binary.BigEndian.Uint32(b)),
		code:   int32(binary.BigEndian.Uint32(b[12:])),
		body:   b[headLength:],
	}, nil
}

// token returns what the server says in an answer to a step of SASL, nil for nothing.
func (a answer) token() ([]byte, error) {
	if len(a.body) < 4 {
		return nil, errFrame
	}
	n := int32(binary.BigEndian.Uint32(a.body))
	switch {
	case n < 0:
		return nil, nil
	case int(n) > len(a.body)-4:
		return nil, errFrame
	}
	return a.body[4:][:n], nil
}

// greeting is the server's answer to a handshake.
type greeting struct {
	timeout time.Duration
	session int64 // 0: the session that was asked for has expired
}

// GreetingLength is the length of a greeting up to the end of its password. Most servers say one byte more.
const GreetingLength = 4 + 4 + 8 + 4 + PasswordLength

func parseGreeting(b []byte) (greeting, error) {
	if len(b) < GreetingLength || len(b) > GreetingLength+1 || binary.BigEndian.Uint32(b[16:]) != PasswordLength {
		return greeting{}, errFrame
	}
	return greeting{
		timeout: time.Duration(binary.BigEndian.Uint32(b[4:])) * time.Millisecond,
		session: int64(binary.BigEndian.Uint64(b[8:])),
	}, nil
}
