package session

import (
	"fmt"

	"github.com/go-zookeeper/zk"
)

// refusal is why there is no session: the servers refuse an identity. It says the scheme
// alone, since what comes with that is a secret.
type refusal struct{ scheme string }

func (r *refusal) Error() string {
	return fmt.Sprintf("the server refuses the identity of scheme %q: %v", r.scheme, zk.ErrAuthFailed)
}

func (r *refusal) Unwrap() error { return zk.ErrAuthFailed }
