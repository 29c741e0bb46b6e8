package quorum

import "time"

// A quorumConn is the connection between a leader and a follower. Either end can close it. The other
// end learns that from a message, if the message arrives.
type quorumConn struct{ leader, follower *Member }

// messageKind is a kind of message between servers. The names are ZooKeeper's.
type messageKind int

const (
	messageProposal   messageKind = iota // leader: log this transaction
	messageCommit                        // leader: apply the next transaction of the log
	messageSync                          // leader: everything that the oldest sync waits for was sent
	messagePing                          // leader: twice a tick; follower: the answer, with touches
	messageAck                           // follower: the transaction is logged
	messageRequest                       // follower: a client's write or sync
	messageRevalidate                    // follower: may this session continue here? leader: the answer
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

// A touch says that a server has heard of a session, and with which timeout the session is connected there.
type touch struct {
	session int64
	timeout time.Duration
}

// take processes a message that has arrived. It drops the message if this end has closed the connection.
func (m *Member) take(b *quorumConn, msg message) {
	if f := m.follow; f != nil && f.conn == b {
		f.take(msg)
	}
	if l := m.lead; l != nil {
		if f := l.learner(b); f != nil {
			l.take(f, msg)
		}
	}
}
