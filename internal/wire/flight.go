package wire

import (
	"fmt"
	"slices"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
)

// flight has the frames that were sent on one connection and not yet answered, in order. A server
// answers in the order of the requests. The order shows that an answer was lost, came twice, changed places
// with another or was never asked for.
type flight struct {
	all  []clock.Sending
	done int // how many at the beginning of all have been answered
}

// flightRoom is for how many frames a connection keeps room when none is in flight. What a burst needed
// beyond that is freed.
const flightRoom = 64

func (f *flight) add(s clock.Sending) {
	if f.done > len(f.all)/2 && len(f.all) == cap(f.all) {
		f.all = f.all[:copy(f.all, f.all[f.done:])]
		f.done = 0
	}
	f.all = append(f.all, s)
}

// oldest returns the frame that has been in flight for longest.
func (f *flight) oldest() (clock.Sending, bool) {
	if f.done == len(f.all) {
		return clock.Sending{}, false
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
func (f *flight) answered(xid, code int32) (clock.Sending, error) {
	waiting := f.all[f.done:]
	for i, s := range waiting {
		if s.Xid == xid && (s.At.Equal(waiting[0].At) || hasty(s.Op, code)) {
			return f.take(i), nil
		}
	}
	if len(waiting) == 0 {
		return clock.Sending{}, fmt.Errorf("%w: an answer to request %d, when none was due", codec.ErrBadFrame, xid)
	}
	return clock.Sending{}, fmt.Errorf("%w: an answer to request %d, when that to %d was due", codec.ErrBadFrame, xid, waiting[0].Xid)
}

// take removes and returns the i-th frame that is not answered.
func (f *flight) take(i int) clock.Sending {
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
	case codec.OpCreate, codec.OpCreate2, codec.OpDelete, codec.OpSetData, codec.OpSetACL:
		return code == codec.CodeNoAuth || code == codec.CodeInvalidACL
	case codec.OpCreateContainer, codec.OpCreateTTL:
		return code == codec.CodeUnimplemented
	}
	return false
}
