package cli

import (
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/digestmd5"
	"github.com/turnstile-go/turnstile/internal/wire"
	"github.com/turnstile-go/turnstile/session"
)

// schemeSASL is the scheme of an identity that is proved by SASL, with DIGEST-MD5: sasl:user:password.
const schemeSASL = "sasl"

// option returns the option that presents an identity.
func (i identity) option() session.Option {
	if i.scheme == schemeSASL {
		user, password, _ := strings.Cut(string(i.credential), ":")
		return session.WithSASL(session.DigestMD5(user, password))
	}
	return session.WithAuth(i.scheme, i.credential)
}

// splitSASL takes the identity that is proved by SASL out of the others, for connections that the guard makes itself.
func splitSASL(all []codec.Identity) (others []codec.Identity, s *wire.SASL) {
	for _, i := range all {
		if i.Scheme != schemeSASL {
			others = append(others, i)
			continue
		}
		user, password, _ := strings.Cut(string(i.Credential), ":")
		s = &wire.SASL{Name: digestmd5.Name, Start: func(time.Duration) (wire.Exchange, []byte, error) {
			return digestmd5.NewClient(user, password), nil, nil
		}}
	}
	return others, s
}
