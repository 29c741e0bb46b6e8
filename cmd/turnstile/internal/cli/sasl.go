package cli

import (
	"strings"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/visit"
	"github.com/turnstile-go/turnstile/session"
)

// schemeSASL is the scheme of an identity that is proved by SASL, with DIGEST-MD5: sasl:user:password.
const schemeSASL = "sasl"

// option returns the option that presents an identity.
func (i identity) option() session.Option {
	if i.scheme == schemeSASL {
		return session.WithSASL(mechanism(i.credential))
	}
	return session.WithAuth(i.scheme, i.credential)
}

func mechanism(credential []byte) session.SASLMechanism {
	user, password, _ := strings.Cut(string(credential), ":")
	return session.DigestMD5(user, password)
}

// splitSASL takes the identity that is proved by SASL out of the others, for connections that the guard makes itself.
func splitSASL(all []visit.Identity) (others []visit.Identity, m session.SASLMechanism) {
	for _, i := range all {
		if i.Scheme == schemeSASL {
			m = mechanism(i.Credential)
		} else {
			others = append(others, i)
		}
	}
	return others, m
}
