package quorum

import "time"

// A bond is the connection between a leader and a follower. Each end closes it by
// itself. The other end learns that from a message, if the message gets through.
type bond struct{ leader, follower *Member }

// messageKind is what servers say to each other. The names are ZooKeeper's.
type messageKind int

const (
	messageProposal   messageKind = iota // leader: log this transaction
	messageCommit                        // leader: apply the next transaction of the log
	messageSync                          // leader: all that the oldest sync has to wait for was sent
	messagePing                          // leader, twice a tick; follower: the answer, with touches
	messageAck                           // follower: the transaction is logged
	messageRequest                       // follower: a client's write or sync
	messageRevalidate                    // follower: may this session go on here? leader: the answer
	messageClosed                        // either: the connection is closed
)

type message struct {
	kind    messageKind
	txn     *txn     // proposal
	zxid    int64    // commit, ack
	request *request // request
	touches []touch  // ping
	touch            // revalidate
	valid   bool     // revalidate, the answer
}

// A touch says that a client was heard of, and with which session timeout it is
// connected.
type touch struct {
	session int64
	timeout time.Duration
}

// take processes a message that has arrived. It is too late for one that was
// sent on a connection which this end has closed.
func (m *Member) take(b *bond, msg message) {
	if f := m.follow; f != nil && f.bond == b {
		f.take(msg)
	}
	if l := m.lead; l != nil {
		if f := l.learner(b); f != nil {
			l.take(f, msg)
		}
	}
}
