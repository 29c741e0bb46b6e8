package zktest

import (
	"fmt"

	"github.com/turnstile-go/turnstile/internal/digestmd5"
)

// SASLUser gives the server a user who can prove by SASL who it is, with DIGEST-MD5 ([session.DigestMD5]), and ACLs of
// the scheme "sasl". It may be given more than once. A server without users answers clients that try SASL as ZooKeeper
// does without a JAAS file: with nothing.
//
// [session.DigestMD5]: https://pkg.go.dev/github.com/turnstile-go/turnstile/session#DigestMD5
func SASLUser(user, password string) Option {
	return option(func(c *config) error {
		if err := digestmd5.Check(user, password); err != nil {
			return fmt.Errorf("zktest: SASLUser: %w", err)
		}
		if c.Passwords == nil {
			c.Passwords = make(map[string]string)
		}
		c.Passwords[user] = password
		return nil
	})
}

// RequireSASL has the server refuse all requests of clients that have not proved by SASL who they are, like ZooKeeper's
// setting sessionRequireClientSASLAuth. Sessions can be opened without. The default is not to.
func RequireSASL() Option {
	return option(func(c *config) error { c.RequireSASL = true; return nil })
}
