package quorum

import (
	"fmt"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// The length of a request is checked where frames are read, outside of this package. The end of a session has a limit
// too.

// logOverhead is what the end of a session has in a log besides its paths: the header of the transaction, the number of
// paths, and the digest of the tree.
const logOverhead = 32 + 4 + 12

// unreadable returns an error if servers can write a transaction to a log, but neither read it back nor receive it.
// That can be the end of a session, which lists the paths of its ephemeral nodes. Other transactions are hardly longer
// than their requests.
func (c *Config) unreadable(t *txn) error {
	if t.op != codec.OpClose {
		return nil
	}
	n := logOverhead
	for _, c := range t.changes {
		n += 4 + len(c.Path)
	}
	if n <= c.MaxRead {
		return nil
	}
	return fmt.Errorf("the end of session %#x has %d bytes, with the paths of %d ephemeral nodes, and servers read at most %d "+
		"(jute.maxbuffer and its extra size). ZooKeeper says: Unreasonable length = %d", t.session, n, len(t.changes), c.MaxRead, n)
}

// spoil notes that the server has written a transaction to its log that it cannot read back. A server alone goes on
// until it is stopped. A leader goes on until it notices that the others have left it.
func (m *Member) spoil(err error) {
	if m.spoiled == nil {
		m.spoiled = fmt.Errorf("zktest: server %d cannot read its log: %w", m.index, err)
	}
}

// Failure returns why the server cannot start again, and cannot serve again if it has stopped serving. It returns nil
// if it can.
func (m *Member) Failure() error { return m.spoiled }
