package session

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
)

// CreateMode is one of ZooKeeper's seven kinds of node. The zero value is Persistent.
type CreateMode core.CreateMode

// The kinds of node without a TTL. See [PersistentTTL] and [PersistentSequentialTTL] for the
// others. A server that has no containers, such as ZooKeeper before 3.5.1, refuses them with
// [ErrUnimplemented] and closes the connection, or closes it without an answer.
var (
	Persistent           = CreateMode(core.Persistent)
	PersistentSequential = CreateMode(core.PersistentSequential)
	Ephemeral            = CreateMode(core.Ephemeral)
	EphemeralSequential  = CreateMode(core.EphemeralSequential)
	Container            = CreateMode(core.Container)
)

// PersistentTTL is a persistent node that the server removes once it has had no children and no
// changes for ttl, which must be at least 1 ms. TTL nodes must be enabled on the server
// (extendedTypesEnabled). If they are not, a create fails with [ErrUnimplemented].
func PersistentTTL(ttl time.Duration) CreateMode {
	return CreateMode(core.PersistentTTL(ttl))
}

// PersistentSequentialTTL is a [PersistentTTL] node with a sequence number.
func PersistentSequentialTTL(ttl time.Duration) CreateMode {
	return CreateMode(core.PersistentSequentialTTL(ttl))
}
