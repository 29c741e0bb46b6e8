package session

import (
	"time"

	"github.com/go-zookeeper/zk"
)

// CreateMode is one of ZooKeeper's seven kinds of node. The zero value is Persistent.
type CreateMode struct {
	flag int32
	ttl  time.Duration
}

// The kinds of node without a TTL. See [PersistentTTL] and [PersistentSequentialTTL] for the
// others. A server that has no containers, such as ZooKeeper before 3.5.1, refuses them with
// [ErrUnimplemented] and closes the connection, or closes it without an answer.
var (
	Persistent           = CreateMode{flag: zk.FlagPersistent}
	PersistentSequential = CreateMode{flag: zk.FlagSequence}
	Ephemeral            = CreateMode{flag: zk.FlagEphemeral}
	EphemeralSequential  = CreateMode{flag: zk.FlagEphemeralSequential}
	Container            = CreateMode{flag: zk.FlagContainer}
)

// PersistentTTL is a persistent node that the server removes once it has had no children and no
// changes for ttl, which must be at least 1 ms. TTL nodes must be enabled on the server
// (extendedTypesEnabled). If they are not, a create fails with [ErrUnimplemented].
func PersistentTTL(ttl time.Duration) CreateMode {
	return CreateMode{flag: zk.FlagTTL, ttl: ttl}
}

// PersistentSequentialTTL is a [PersistentTTL] node with a sequence number.
func PersistentSequentialTTL(ttl time.Duration) CreateMode {
	return CreateMode{flag: zk.FlagPersistentSequentialWithTTL, ttl: ttl}
}

func (m CreateMode) ephemeral() bool {
	return m.flag == zk.FlagEphemeral || m.flag == zk.FlagEphemeralSequential
}

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
		return invalidf("TTL %v is below 1 ms", m.ttl)
	}
	return nil
}
