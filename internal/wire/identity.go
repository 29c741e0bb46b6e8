package wire

import (
	"fmt"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// identities presents the identities of a session on one connection. It sends them right behind
// the greeting, ahead of all requests. A server takes them in order, before everything that follows. A
// server that refuses an identity says so, closes the connection and reads no further.
type identities []codec.Identity

// answer takes the server's answer to the next identity. The error says what is wrong with the
// answer.
func (p *identities) answer(code int32, events Events) error {
	switch {
	case len(*p) == 0:
		return fmt.Errorf("%w: an answer to an identity that was not presented", codec.ErrBadFrame)
	case code != codec.CodeOK:
		events.Refused((*p)[0].Scheme, nil)
	default:
		if *p = (*p)[1:]; len(*p) == 0 {
			events.Accepted()
		}
	}
	return nil
}
