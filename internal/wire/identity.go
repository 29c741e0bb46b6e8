package wire

import (
	"fmt"
)

// Identity is what a client presents to the servers: see session.WithAuth.
type Identity struct {
	Scheme     string
	Credential []byte
}

// identities presents them on one connection. They are sent right behind the handshake,
// before zk.Conn has seen its answer, so that no request can come before them. A server takes
// them in order and before all that follows. One that refuses an identity says so, closes the
// connection and reads no further.
//
// zk.Conn could do it too, but it forgets an identity when the connection breaks between the
// answer and its note of it, takes a round trip for each, and tries for ever when refused.
type identities struct {
	list     []Identity
	answered int
}

// frames returns what presents them.
func (p *identities) frames() [][]byte {
	var out [][]byte
	for _, id := range p.list {
		out = append(out, AuthFrame(id.Scheme, id.Credential))
	}
	return out
}

// answer takes the server's answer to the next of them, or says what is wrong with it.
func (p *identities) answer(code int32, events Events) error {
	switch {
	case p.answered == len(p.list):
		return fmt.Errorf("%w: an answer to an identity that was not presented", ErrBadFrame)
	case code != CodeOK:
		events.Refused(p.list[p.answered].Scheme)
	default:
		p.answered++
		if p.answered == len(p.list) {
			events.Accepted()
		}
	}
	return nil
}
