package session

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
)

// CreateMode is one of ZooKeeper's seven kinds of node. The zero value is Persistent.
type CreateMode struct {
	flag int32
	ttl  time.Duration
}

// The kinds of node that need no further word. See [PersistentTTL] and
// [PersistentSequentialTTL] for the other two.
var (
	Persistent           = CreateMode{flag: zk.FlagPersistent}
	PersistentSequential = CreateMode{flag: zk.FlagSequence}
	Ephemeral            = CreateMode{flag: zk.FlagEphemeral}
	EphemeralSequential  = CreateMode{flag: zk.FlagEphemeralSequential}
	Container            = CreateMode{flag: zk.FlagContainer}
)

// PersistentTTL is a persistent node that the server removes once it has been
// without children and changes for ttl, at least 1 ms. The server must have TTL
// nodes enabled.
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

// create makes a node and returns its path. Both have the chroot on them.
func (s *Session) create(full string, data []byte, m CreateMode) (string, error) {
	made, err := s.sendCreate(full, data, m)
	if err == nil {
		err = s.doubt(checkMade(full, m, made))
	}
	return made, err
}

// sendCreate makes the call of zk.Conn for a mode.
func (s *Session) sendCreate(full string, data []byte, m CreateMode) (string, error) {
	if !m.hasTTL() && m.flag != zk.FlagContainer {
		return s.conn.Create(full, data, m.flag, s.cfg.acl)
	}
	// These two of zk.Conn, unlike its others, look at the reply also when its Close has given
	// the request up, while that may just be coming in: see closeConn.
	if !s.replies.TryAcquire(1) {
		return "", zk.ErrConnectionClosed
	}
	defer s.replies.Release(1)
	if m.hasTTL() {
		return s.conn.CreateTTL(full, data, m.flag, s.cfg.acl, m.ttl)
	}
	return s.conn.CreateContainer(full, data, m.flag, s.cfg.acl)
}

// allReplies is more than there can be.
const allReplies = 1 << 30

// replyPatience is how long closeConn waits for them.
const replyPatience = time.Second

// closeConn closes zk.Conn. Over a connection that is there the replies that must not come in
// meanwhile come before, within reason.
func (s *Session) closeConn(ctx context.Context) {
	if s.isConnected() {
		ctx, cancel := context.WithTimeout(ctx, replyPatience)
		defer cancel()
		_ = s.replies.Acquire(ctx, allReplies) // for good: there is nothing to create any more
	}
	s.conn.Close()
}
