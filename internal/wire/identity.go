package wire

import (
	"fmt"
)

// Identity is what a client presents to the servers: see session.WithAuth.
type Identity struct {
	Scheme     string
	Credential []byte
}

// identities presents the identities of a session on one connection. It sends them right behind
// the greeting, ahead of all requests. A server takes them in order, before everything that follows. A
// server that refuses an identity says so, closes the connection and reads no further.
type identities struct {
	list     []Identity
	answered int
}

// frames returns the frames that present the identities.
func (p *identities) frames() [][]byte {
	var out [][]byte
	for _, id := range p.list {
		out = append(out, AuthFrame(id.Scheme, id.Credential))
	}
	return out
}

// answer takes the server's answer to the next identity. The error says what is wrong with the
// answer.
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
