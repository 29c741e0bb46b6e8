package session

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/digestmd5"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// SASLMechanism is a way to prove to servers who the client is. It has to be safe for concurrent use.
type SASLMechanism interface {
	// Name is for logs and errors.
	Name() string
	// Start begins an exchange with a server, which has this host in the connect string. first is what the client
	// says first, or nil. Start must return when ctx ends. If it fails, the manager tries another server.
	Start(ctx context.Context, host string) (x SASLExchange, first []byte, err error)
}

// SASLExchange is one exchange with one server.
type SASLExchange interface {
	// Challenge takes what the server says, and returns the response. said is nil if the server accepts the last step
	// and says nothing. done ends the exchange: a response that is not nil is still sent, and the server must accept
	// it. An error means a refusal. Challenge must not block.
	Challenge(said []byte) (response []byte, done bool, err error)
}

// WithSASL proves to the servers who the client is, on every connection. Nodes can then have ACLs of the scheme
// "sasl", and servers can insist on it (sessionRequireClientSASLAuth). There is [DigestMD5], and Kerberos in the
// module saslkrb5.
//
// If a server refuses the client, or the mechanism the server, Connect fails with [zk.ErrAuthFailed], and an existing
// session is lost. Servers before 3.6 just hang up, and count as down. An exchange has at most 20 steps, within a
// quarter of the session timeout. It protects nothing that follows: use [WithTLS] too. Default: none.
func WithSASL(mechanism SASLMechanism) Option {
	return option(func(c *config) error {
		switch {
		case mechanism == nil:
			return misuse.Invalidf("nil SASL mechanism")
		case c.sasl != nil:
			return misuse.Invalidf("WithSASL is given twice")
		}
		if d, ok := mechanism.(digestMD5); ok {
			if err := digestmd5.Check(d.user, d.password); err != nil {
				return misuse.Invalidf("DigestMD5: %v", err)
			}
		}
		c.sasl = &wire.SASL{Name: mechanism.Name(), Start: func(ctx context.Context, host string) (wire.Exchange, []byte, error) {
			x, first, err := mechanism.Start(ctx, host)
			if x == nil || err != nil {
				return nil, nil, err
			}
			return x, first, nil
		}}
		return nil
	})
}

// DigestMD5 is a SASL mechanism with a user and a password (RFC 2831), which the servers have in the section Server
// of their JAAS file, as user_shop="secret". An ACL names the user: sasl:shop. Someone who listens can try passwords:
// use [WithTLS]. From ZooKeeper 3.9 on, servers need fips-mode=false.
func DigestMD5(user, password string) SASLMechanism { return digestMD5{user, password} }

type digestMD5 struct{ user, password string }

func (digestMD5) Name() string { return digestmd5.Name }

func (d digestMD5) Start(context.Context, string) (SASLExchange, []byte, error) {
	return digestmd5.NewClient(d.user, d.password), nil, nil
}

// String keeps the password out of logs, as GoString does.
func (d digestMD5) String() string { return digestmd5.Name + " as " + d.user }

func (d digestMD5) GoString() string { return d.String() }
