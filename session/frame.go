package session

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ZooKeeper's opcodes, as far as the wire wrapper tells them apart.
const (
	opCreate          = 1
	opDelete          = 2
	opExists          = 3
	opGetData         = 4
	opSetData         = 5
	opSetACL          = 7
	opSync            = 9
	opPing            = 11
	opGetChildren     = 12 // the second of its kind, whose answer has a stat
	opCheck           = 13
	opMulti           = 14
	opCreateContainer = 19
	opCreateTTL       = 21
	opAuth            = 100
	opSetWatches      = 101
	opClose           = -11
	opFailed          = -1 // in the results of a multi
)

// Types of watch events, the first and the last that a server sends.
const (
	eventCreated  = 1
	eventChildren = 4
)

// ZooKeeper's error codes, as far as they need telling apart here.
const (
	codeConnectionLoss   = -4
	codeUnimplemented    = -6
	codeOperationTimeout = -7
	codeNoNode           = -101
	codeNoAuth           = -102
	codeNotEmpty         = -111
	codeSessionExpired   = -112
	codeThrottled        = -127
)

// xids that are not a request's.
const (
	xidEvent = -1
	xidPing  = -2
	xidAuth  = -4
)

// proof is what an answer shows about the ensemble: see clock.go.
type proof int

const (
	proofNone   proof = iota // any server may have answered by itself
	proofLeader              // the leader has answered
	proofQuorum              // a quorum has agreed to the answer
)

// proves returns what an answer to a request shows. A leader answers sync alone, and for
// seconds after it was cut off from the others; a write, be it refused, is agreed upon.
func proves(op int32) proof {
	switch op {
	case opSync:
		return proofLeader
	case opCreate, opDelete, opSetData, opSetACL, opMulti, opCreateContainer, opCreateTTL:
		return proofQuorum
	}
	return proofNone
}

// agreed reports whether an answer with this error code was given by the leader, for a
// live session. Some followers refuse for lack of rights by themselves.
func agreed(code int32) bool {
	return code == 0 || code <= codeNoNode && code >= codeNotEmpty && code != codeNoAuth
}

// Sizes of frames. A reply is as large as a listing can be: a hundred thousand
// contenders. More than that is no answer but an attack or a broken stream.
const (
	frameHead      = 40 // enough for a ConnectResponse with its password
	replyHeader    = 16 // xid, zxid, error code
	connectReply   = 36 // version, timeout, session, password
	maxFrame       = 16 << 20
	passwordLength = 16
)

var errBadFrame = errors.New("malformed frame from the server")

// frames finds the frames in a stream of bytes that comes in pieces, hands on the head of
// each, and checks its body.
type frames struct {
	buf  [4 + frameHead]byte // length and head of the present frame
	have int                 // bytes of it seen
	body body                // of the present frame, beyond what buf has of it
}

// feed takes the next bytes; head is called for each frame whose head is complete, and
// returns what the body behind a reply's header has to hold. The slice it is given is good
// only until it returns. An error comes before the last byte of the frame is passed on.
func (f *frames) feed(p []byte, head func([]byte) ([]field, error)) error {
	for len(p) > 0 {
		if f.body.left > 0 {
			var err error
			if p, err = f.body.feed(p); err != nil {
				return err
			}
			continue
		}
		want, err := f.wanted()
		if err != nil {
			return err
		}
		n := copy(f.buf[f.have:want], p)
		f.have += n
		p = p[n:]
		if want == 4 && f.have == 4 {
			// Now, not at the next byte: the reader makes room for what the
			// length says before it reads on.
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
	}
	return nil
}

// complete is called with the head of a frame.
func (f *frames) complete(start []byte, head func([]byte) ([]field, error)) error {
	fields, err := head(start)
	if err != nil {
		return err
	}
	if err := f.body.begin(fields, f.length()-replyHeader); err != nil {
		return err
	}
	_, err = f.body.feed(start[replyHeader:])
	return err
}

// wanted returns how many bytes of the present frame to gather: its length first,
// then its head.
func (f *frames) wanted() (int, error) {
	if f.have < 4 {
		return 4, nil
	}
	if n := f.length(); n < replyHeader || n > maxFrame {
		return 0, fmt.Errorf("%w: %d bytes long", errBadFrame, n)
	}
	return 4 + min(f.length(), frameHead), nil
}

func (f *frames) length() int { return int(int32(binary.BigEndian.Uint32(f.buf[:4]))) }

// replyOf reads the header of a reply.
func replyOf(head []byte) (xid, code int32) {
	return int32(binary.BigEndian.Uint32(head)), int32(binary.BigEndian.Uint32(head[12:]))
}

// greeting is a server's answer to the handshake.
type greeting struct {
	timeoutMillis int32
	session       int64 // 0: the session has expired
	password      [passwordLength]byte
}

func parseGreeting(head []byte) (greeting, error) {
	if len(head) < connectReply {
		return greeting{}, fmt.Errorf("%w: handshake of %d bytes", errBadFrame, len(head))
	}
	g := greeting{
		timeoutMillis: int32(binary.BigEndian.Uint32(head[4:])),
		session:       int64(binary.BigEndian.Uint64(head[8:])),
	}
	copy(g.password[:], head[20:])
	if n := int32(binary.BigEndian.Uint32(head[16:])); n != passwordLength {
		return greeting{}, fmt.Errorf("%w: password of %d bytes", errBadFrame, n)
	}
	if g.session != 0 && g.timeoutMillis <= 0 {
		return greeting{}, fmt.Errorf("%w: session timeout of %d ms", errBadFrame, g.timeoutMillis)
	}
	return g, nil
}
