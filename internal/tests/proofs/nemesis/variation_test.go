//go:build linux

package nemesis

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
)

// The processes of the workers differ in how they say who they are, and in how they find the servers. Of
// four lives in a row, and of four workers, each is of another sort.

const (
	user     = "worker" // by SASL, and by the scheme digest
	password = "secret"
)

// variation returns the connect string and the options of a worker's session.
func (s *settings) variation() (servers string, opts []session.Option) {
	sort := (s.Seed + uint64(s.Worker) + uint64(s.Life)) % 4
	if sort%2 == 0 {
		opts = append(opts, session.WithSASL(session.DigestMD5(user, password)))
	} else {
		opts = append(opts, session.WithAuth("digest", []byte(user+":"+password)))
	}
	if s.Worker == 3 && s.Timeout < defaultTimeout { // the strict policy that Curator's documentation advises
		opts = append(opts, session.WithLossOnSuspend())
	}
	if sort < 2 {
		return s.Servers, opts
	}
	r := resolver{strings.Split(s.Servers, ","), rand.New(rand.NewPCG(s.Seed, uint64(s.Worker)<<32|uint64(s.Life)))}
	return "", append(opts, session.WithResolver(r.resolve))
}

// resolver names all servers, few of them, or none, and it can fail.
type resolver struct {
	servers []string
	random  *rand.Rand
}

var errResolver = errors.New("the resolver fails")

// formerServer is an address that a stale answer has. Nobody listens there.
const formerServer = "127.0.0.1:1"

func (r resolver) resolve(context.Context) ([]string, error) {
	some := r.servers[:r.random.IntN(1+len(r.servers))]
	switch r.random.IntN(8) {
	case 0:
		return nil, errResolver
	case 1, 2:
		return append([]string{formerServer}, some...), nil
	case 3, 4, 5:
		return some, nil
	default:
		return r.servers, nil
	}
}

// closedTo is the ACL of a directory that only the workers can use, by either of their identities. A worker
// that has not said who it is, on a connection or in a session, is a stranger there.
func closedTo() []zk.ACL {
	return append(zk.DigestACL(zk.PermAll, user, password), zk.ACL{Perms: zk.PermAll, Scheme: "sasl", ID: user})
}
