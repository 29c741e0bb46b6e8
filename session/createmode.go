package session

import (
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// CreateMode is one of the kinds of node that stay when the session ends. The zero value is Persistent. [Session.Enter] makes
// ephemeral nodes.
type CreateMode struct {
	flag int32
	ttl  time.Duration
}

// The kinds of node without a TTL. See [PersistentTTL] and [PersistentSequentialTTL] for the others.
var (
	Persistent           = CreateMode{flag: zk.FlagPersistent}
	PersistentSequential = CreateMode{flag: zk.FlagSequence}
	Container            = CreateMode{flag: zk.FlagContainer}
)

// PersistentTTL is a persistent node that the server removes once it has had no children and no changes for ttl, which must
// be at least 1 ms. TTL nodes must be enabled on the server (extendedTypesEnabled). If they are not, a create fails with
// [ErrUnimplemented].
func PersistentTTL(ttl time.Duration) CreateMode {
	return CreateMode{flag: zk.FlagTTL, ttl: ttl}
}

// PersistentSequentialTTL is a [PersistentTTL] node with a sequence number.
func PersistentSequentialTTL(ttl time.Duration) CreateMode {
	return CreateMode{flag: zk.FlagPersistentSequentialWithTTL, ttl: ttl}
}

// The kinds that Enter makes.
var (
	ephemeral           = CreateMode{flag: zk.FlagEphemeral}
	ephemeralSequential = CreateMode{flag: zk.FlagEphemeralSequential}
)

func (m CreateMode) sequential() bool {
	switch m.flag {
	case zk.FlagSequence, zk.FlagEphemeralSequential, zk.FlagPersistentSequentialWithTTL:
		return true
	}
	return false
}

func (m CreateMode) hasTTL() bool {
	return m.flag == zk.FlagTTL || m.flag == zk.FlagPersistentSequentialWithTTL
}

func (m CreateMode) validate() error {
	if m.hasTTL() && m.ttl < time.Millisecond {
		return misuse.Invalidf("TTL %v is below 1 ms", m.ttl)
	}
	return nil
}

// validateCreate allows a path that ends with a slash for a sequential node, whose name is then the number alone: "/dir/".
func validateCreate(path string, mode CreateMode) error {
	if mode.sequential() && strings.HasSuffix(path, "/") && path != "/" {
		return misuse.ValidatePath(strings.TrimSuffix(path, "/"))
	}
	return misuse.ValidatePath(path)
}
