package session

import (
	"fmt"
	"slices"
	"time"
)

// sending is a request under way.
type sending struct {
	xid, op int32
	at      time.Time
}

// due holds the requests of one connection that were sent and not yet answered, in order. A
// server answers in the order in which it was asked, and zk.Conn does not look: it hands any
// answer to whichever request has its number. Answers that are lost, come twice, change
// places or were never asked for are told by that.
type due struct {
	all  []sending
	done int // of all, how many at its beginning have been answered
}

func (d *due) add(s sending) {
	if d.done > len(d.all)/2 && len(d.all) == cap(d.all) {
		d.all = d.all[:copy(d.all, d.all[d.done:])]
		d.done = 0
	}
	d.all = append(d.all, s)
}

// answered takes the request that an answer is to, or says what is wrong with the answer.
// Of what was sent at one instant nobody can tell the order by the clock. A clock of
// nanoseconds has no two at one instant; one that stands still while many send, as in
// testing/synctest, leaves the order open, and package sim shuffles them by that.
func (d *due) answered(xid int32) (sending, error) {
	waiting := d.all[d.done:]
	for i, s := range waiting {
		if s.xid != xid || !s.at.Equal(waiting[0].at) {
			continue
		}
		if i > 0 {
			d.all = slices.Delete(d.all, d.done+i, d.done+i+1)
			return s, nil
		}
		if d.done++; d.done == len(d.all) {
			d.all, d.done = d.all[:0], 0
		}
		return s, nil
	}
	if len(waiting) == 0 {
		return sending{}, fmt.Errorf("%w: an answer to request %d, and none was asked", errBadFrame, xid)
	}
	return sending{}, fmt.Errorf("%w: an answer to request %d, when that to %d was due", errBadFrame, xid, waiting[0].xid)
}
