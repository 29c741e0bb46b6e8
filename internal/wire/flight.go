package wire

import (
	"fmt"
	"slices"
	"time"
)

// sending is a frame in flight: a request or a ping.
type sending struct {
	xid, op int32
	at      time.Time
	proof   time.Time // touched in lease.go, if a quorum answers
}

// flight has the frames that were sent on one connection and not yet answered, in order. A server
// answers in the order of the requests. The order shows that an answer was lost, came twice, changed places
// with another or was never asked for.
type flight struct {
	all  []sending
	done int // how many at the beginning of all have been answered
}

// flightRoom is for how many frames a connection keeps room when none is in flight. What a burst needed
// beyond that is freed.
const flightRoom = 64

func (f *flight) add(s sending) {
	if f.done > len(f.all)/2 && len(f.all) == cap(f.all) {
		f.all = f.all[:copy(f.all, f.all[f.done:])]
		f.done = 0
	}
	f.all = append(f.all, s)
}

// oldest returns the frame that has been in flight for longest.
func (f *flight) oldest() (sending, bool) {
	if f.done == len(f.all) {
		return sending{}, false
	}
	return f.all[f.done], true
}

// answered removes and returns the request that belongs to an answer with this number and code.
// The error says what is wrong with the answer.
//
// If several frames were sent at the same instant, the clock does not tell their order, and any
// of them may be answered first. A clock with nanoseconds has no two frames at one instant. The
// clock of testing/synctest stands still while many frames are sent, and package sim shuffles
// them.
func (f *flight) answered(xid, code int32) (sending, error) {
	waiting := f.all[f.done:]
	for i, s := range waiting {
		if s.xid == xid && (s.at.Equal(waiting[0].at) || hasty(s.op, code)) {
			return f.take(i), nil
		}
	}
	if len(waiting) == 0 {
		return sending{}, fmt.Errorf("%w: an answer to request %d, when none was due", ErrBadFrame, xid)
	}
	return sending{}, fmt.Errorf("%w: an answer to request %d, when that to %d was due", ErrBadFrame, xid, waiting[0].xid)
}

// take removes and returns the i-th frame that is not answered.
func (f *flight) take(i int) sending {
	s := f.all[f.done+i]
	if i > 0 {
		f.all = slices.Delete(f.all, f.done+i, f.done+i+1)
		return s
	}
	if f.done++; f.done == len(f.all) {
		f.all, f.done = f.all[:0], 0
		if cap(f.all) > flightRoom {
			f.all = nil
		}
	}
	return s
}

// hasty reports whether a server may give this answer before others that are due. With
// enableEagerACLCheck (ZooKeeperServer.authWriteRequest), it refuses single writes before it
// queues them, but not writes within a multi. It also refuses at once a request that it does not
// know, and then closes the connection.
func hasty(op, code int32) bool {
	switch op {
	case OpCreate, OpCreate2, OpDelete, OpSetData, OpSetACL:
		return code == CodeNoAuth || code == CodeInvalidACL
	case OpCreateContainer, OpCreateTTL:
		return code == CodeUnimplemented
	}
	return false
}

// evidence is what an answer shows about the ensemble: see lease.go.
type evidence int

const (
	evidenceNone   evidence = iota // the server may have answered alone
	evidenceLeader                 // the leader has answered
	evidenceQuorum                 // a quorum has agreed to the answer
)

// shows returns what an answer to a request shows. The leader answers a sync alone, and does so
// for seconds after it was cut off from the other servers. A quorum agrees to each write, also to
// one that is refused because of the nodes that exist. Other refusals a follower can give alone:
// for lack of rights or for a bad ACL (enableEagerACLCheck), because it is overloaded, or because
// it is read-only. A multi that was refused because of one of its operations has CodeOK in its header, and
// each operation's code in its body. Only the leader tries the operations, and a quorum agrees to the refusal.
func shows(op, code int32) evidence {
	switch op {
	case OpSync:
		if code == CodeOK {
			return evidenceLeader
		}
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpSetACL, OpMulti:
		switch code {
		case CodeOK, CodeNoNode, CodeNodeExists, CodeBadVersion, CodeNotEmpty:
			return evidenceQuorum
		}
	}
	return evidenceNone
}
