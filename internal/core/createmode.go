package core

import (
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// CreateMode is one of ZooKeeper's seven kinds of node: see package session. The zero value is Persistent.
type CreateMode struct {
	flag int32
	ttl  time.Duration
}

// The kinds of node without a TTL.
var (
	Persistent           = CreateMode{flag: zk.FlagPersistent}
	PersistentSequential = CreateMode{flag: zk.FlagSequence}
	Ephemeral            = CreateMode{flag: zk.FlagEphemeral}
	EphemeralSequential  = CreateMode{flag: zk.FlagEphemeralSequential}
	Container            = CreateMode{flag: zk.FlagContainer}
)

// PersistentTTL is a persistent node with a TTL.
func PersistentTTL(ttl time.Duration) CreateMode {
	return CreateMode{flag: zk.FlagTTL, ttl: ttl}
}

// PersistentSequentialTTL is a [PersistentTTL] node with a sequence number.
func PersistentSequentialTTL(ttl time.Duration) CreateMode {
	return CreateMode{flag: zk.FlagPersistentSequentialWithTTL, ttl: ttl}
}

// Flags returns what a zk.CreateRequest has of the mode.
func (m CreateMode) Flags() int32 { return m.flag }

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
		return misuse.Invalidf("TTL %v is below 1 ms", m.ttl)
	}
	return nil
}
