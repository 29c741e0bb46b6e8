package wire

import (
	"fmt"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/line"
)

// flight has the frames that were sent on one connection and not yet answered, in order. A server
// answers in the order of the requests. The order shows that an answer was lost, came twice, changed places
// with another or was never asked for.
type flight struct{ line.Line[clock.Sending] }

// oldest returns the frame that has been in flight for longest.
func (f *flight) oldest() (clock.Sending, bool) {
	if f.Len() == 0 {
		return clock.Sending{}, false
	}
	return *f.First(), true
}

// answered removes and returns the request that belongs to an answer with this number and code.
// The error says what is wrong with the answer.
//
// If several frames were sent at the same instant, the clock does not tell their order, and any
// of them may be answered first. A clock with nanoseconds has no two frames at one instant. The
// clock of testing/synctest stands still while many frames are sent, and package sim shuffles
// them.
func (f *flight) answered(xid, code int32) (clock.Sending, error) {
	waiting := f.Rest()
	for i, s := range waiting {
		if s.Xid == xid && (s.At.Equal(waiting[0].At) || hasty(s.Op, code)) {
			return f.Remove(i), nil
		}
	}
	if len(waiting) == 0 {
		return clock.Sending{}, fmt.Errorf("%w: an answer to request %d, when none was due", codec.ErrBadFrame, xid)
	}
	return clock.Sending{}, fmt.Errorf("%w: an answer to request %d, when that to %d was due", codec.ErrBadFrame, xid, waiting[0].Xid)
}

// hasty reports whether a server may give this answer before others that are due. With
// enableEagerACLCheck (ZooKeeperServer.authWriteRequest), it refuses single writes before it
// queues them, but not writes within a multi. It also refuses at once a request that it does not
// know, and then closes the connection.
func hasty(op, code int32) bool {
	switch op {
	case codec.OpCreate, codec.OpCreate2, codec.OpDelete, codec.OpSetData, codec.OpSetACL:
		return code == codec.CodeNoAuth || code == codec.CodeInvalidACL
	case codec.OpCreateContainer, codec.OpCreateTTL:
		return code == codec.CodeUnimplemented
	}
	return false
}
