package session

import (
	"encoding/binary"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// identities presents those of [WithAuth] on one connection. They are sent right behind the
// handshake, before zk.Conn has seen its answer, so that no request can come before them. A
// server takes them in order and before all that follows; one that refuses an identity says
// so, closes the connection and reads no further.
//
// zk.Conn could do it too, but it forgets an identity when the connection breaks between the
// answer and its note of it, takes a round trip for each, and tries for ever when refused.
type identities struct {
	list     []auth
	answered int

	accepted func()            // all of them were
	refused  func(auth string) // one was, of this scheme
}

// frames returns what presents them.
func (p *identities) frames() [][]byte {
	var out [][]byte
	for _, a := range p.list {
		out = append(out, authFrame(a))
	}
	return out
}

// answer takes the server's answer to the next of them, or says what is wrong with it.
func (p *identities) answer(code int32) error {
	switch {
	case p.answered == len(p.list):
		return fmt.Errorf("%w: an answer to an identity that was not presented", errBadFrame)
	case code != 0:
		p.refused(p.list[p.answered].scheme)
	default:
		p.answered++
		if p.answered == len(p.list) {
			p.accepted()
		}
	}
	return nil
}

// authFrame returns the frame that presents an identity.
func authFrame(a auth) []byte {
	xid := int32(xidAuth)
	size := 4 + 4 + 4 + 4 + len(a.scheme) + 4 + len(a.credential)
	b := make([]byte, 0, 4+size)
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	b = binary.BigEndian.AppendUint32(b, uint32(xid))
	b = binary.BigEndian.AppendUint32(b, opAuth)
	b = binary.BigEndian.AppendUint32(b, 0) // type: always 0
	b = binary.BigEndian.AppendUint32(b, uint32(len(a.scheme)))
	b = append(b, a.scheme...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(a.credential)))
	return append(b, a.credential...)
}

// refusal is why there is no session: the servers refuse an identity. It says the scheme
// alone, since what comes with that is a secret.
type refusal struct{ scheme string }

func (r *refusal) Error() string {
	return fmt.Sprintf("the server refuses the identity of scheme %q: %v", r.scheme, zk.ErrAuthFailed)
}

func (r *refusal) Unwrap() error { return zk.ErrAuthFailed }
