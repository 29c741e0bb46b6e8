package wire

import (
	"fmt"
	"slices"
	"time"
)

// sending is a frame in flight: a request, or a ping.
type sending struct {
	xid, op int32
	at      time.Time
	proof   time.Time // what a quorum's answer to it proves: see lease.go
}

// flight holds what was sent on one connection and not yet answered, in order. A server
// answers in the order in which it was asked, and zk.Conn does not look: it hands any answer
// to whichever request has its number. Answers that are lost, come twice, change places or
// were never asked for are told by that.
type flight struct {
	all  []sending
	done int // of all, how many at its beginning have been answered
}

func (f *flight) add(s sending) {
	if f.done > len(f.all)/2 && len(f.all) == cap(f.all) {
		f.all = f.all[:copy(f.all, f.all[f.done:])]
		f.done = 0
	}
	f.all = append(f.all, s)
}

// oldest returns what has been in flight for longest.
func (f *flight) oldest() (sending, bool) {
	if f.done == len(f.all) {
		return sending{}, false
	}
	return f.all[f.done], true
}

// answered takes the request that an answer with this number and code is to, or says what is
// wrong with the answer.
//
// Of what was sent at one instant nobody can tell the order by the clock. A clock of
// nanoseconds has no two at one instant; one that stands still while many send, as in
// testing/synctest, leaves the order open, and package sim shuffles them by that.
func (f *flight) answered(xid, code int32) (sending, error) {
	waiting := f.all[f.done:]
	for i, s := range waiting {
		if s.xid == xid && (s.at.Equal(waiting[0].at) || hasty(s.op, code)) {
			return f.take(i), nil
		}
	}
	if len(waiting) == 0 {
		return sending{}, fmt.Errorf("%w: an answer to request %d, and none was asked", ErrBadFrame, xid)
	}
	return sending{}, fmt.Errorf("%w: an answer to request %d, when that to %d was due", ErrBadFrame, xid, waiting[0].xid)
}

// take takes the i-th of those that wait for an answer.
func (f *flight) take(i int) sending {
	s := f.all[f.done+i]
	if i > 0 {
		f.all = slices.Delete(f.all, f.done+i, f.done+i+1)
		return s
	}
	if f.done++; f.done == len(f.all) {
		f.all, f.done = f.all[:0], 0
	}
	return s
}

// hasty reports whether a server may give this answer ahead of others that are due. With
// enableEagerACLCheck (ZooKeeperServer.authWriteRequest) it refuses single writes, not those
// within a multi, before it queues them. A request that it does not know it refuses at once,
// too, and closes the connection behind it.
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
	evidenceNone   evidence = iota // the server may have answered by itself
	evidenceLeader                 // the leader has answered
	evidenceQuorum                 // a quorum has agreed to the answer
)

// shows returns what an answer to a request shows. A leader answers sync alone, and for
// seconds after it was cut off from the others. A write is agreed upon, also when it is
// refused because of what is or is not there. Other refusals a follower can give by itself:
// for lack of rights or because of a bad ACL (enableEagerACLCheck), because it has too much
// to do, or because it is read-only.
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
