package wire

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Answers come in the order of requests.
func TestFlight(t *testing.T) {
	var d flight
	now := time.Now()
	ask := func(xids ...int32) {
		for _, xid := range xids {
			now = now.Add(time.Nanosecond)
			d.add(sending{xid: xid, op: OpSync, at: now})
		}
	}
	good := func(xids ...int32) {
		t.Helper()
		for _, xid := range xids {
			if s, err := d.answered(xid, CodeOK); err != nil || s.xid != xid {
				t.Fatalf("answer to %d: %+v, %v", xid, s, err)
			}
		}
	}
	bad := func(xid int32, says string) {
		t.Helper()
		if _, err := d.answered(xid, CodeOK); !errors.Is(err, ErrBadFrame) || !strings.Contains(err.Error(), says) {
			t.Fatalf("answer to %d: %v, want one that says %q", xid, err, says)
		}
	}
	bad(1, "request 1, when none was due")
	ask(1, 2, 3)
	bad(2, "request 2, when that to 1 was due")
	good(1)
	bad(1, "request 1, when that to 2 was due")
	good(2, 3)
	bad(3, "none was due")
	d.add(sending{xid: 1, op: OpSync, at: now})
	d.add(sending{xid: 2, op: OpSync, at: now})
	d.add(sending{xid: 3, op: OpSync, at: now.Add(1)})
	bad(3, "when that to 1 was due")
	good(2, 1, 3) // sent at one instant, the first two
	// With many requests in flight for a long time, the memory is bounded by their number.
	for i := int32(0); i < 20; i++ {
		ask(i)
	}
	for i := int32(20); i < 10_000; i++ {
		ask(i % 100)
		good((i - 20) % 100)
	}
	if cap(d.all) > 200 {
		t.Errorf("room for %d with 20 under way", cap(d.all))
	}
}

// With enableEagerACLCheck a server refuses some writes before it answers earlier requests.
func TestFlightHasty(t *testing.T) {
	for _, c := range []struct {
		op, code int32
		ok       bool
	}{
		{OpCreate, CodeNoAuth, true},
		{OpCreate, CodeInvalidACL, true},
		{OpCreate2, CodeNoAuth, true},
		{OpDelete, CodeNoAuth, true},
		{OpSetData, CodeNoAuth, true},
		{OpSetACL, CodeInvalidACL, true},
		{OpCreate, CodeOK, false},
		{OpDelete, CodeNoNode, false},
		{OpMulti, CodeNoAuth, false},
		{OpCreateContainer, CodeNoAuth, false},
		{OpGetData, CodeNoAuth, false},
		{OpSync, CodeInvalidACL, false},
		{OpCreateContainer, CodeUnimplemented, true},
		{OpCreateTTL, CodeUnimplemented, true},
		{OpCreate, CodeUnimplemented, false},
	} {
		var f flight
		now := time.Now()
		f.add(sending{xid: 1, op: OpCreate, at: now})
		f.add(sending{xid: 2, op: c.op, at: now.Add(1)})
		s, err := f.answered(2, c.code)
		if (err == nil) != c.ok {
			t.Errorf("op %d, code %d: %v, want ok: %v", c.op, c.code, err, c.ok)
		}
		if !c.ok {
			continue
		}
		if s.xid != 2 {
			t.Errorf("got the answer to %d", s.xid)
		}
		if s, err := f.answered(1, CodeOK); err != nil || s.xid != 1 {
			t.Errorf("then: %+v, %v", s, err)
		}
	}
}

// What answers show. A follower can give some of them alone.
func TestShows(t *testing.T) {
	codes := []int32{CodeOK, CodeNoNode, CodeNodeExists, CodeBadVersion, CodeNotEmpty,
		CodeNoAuth, CodeInvalidACL, CodeThrottled, CodeNotReadOnly, CodeSessionExpired, CodeSessionMoved,
		CodeUnimplemented, CodeConnectionLoss, CodeRuntimeInconsistency, CodeBadArguments, 1}
	const agreed = 5 // of codes, those first
	for op, want := range map[int32]evidence{
		OpSync: evidenceLeader, OpCreate: evidenceQuorum, OpCreate2: evidenceQuorum,
		OpCreateContainer: evidenceQuorum, OpCreateTTL: evidenceQuorum, OpDelete: evidenceQuorum,
		OpSetData: evidenceQuorum, OpSetACL: evidenceQuorum, OpMulti: evidenceQuorum,
		OpPing: evidenceNone, OpExists: evidenceNone, OpGetData: evidenceNone, OpGetChildren2: evidenceNone,
		OpSetWatches: evidenceNone, OpClose: evidenceNone, OpAuth: evidenceNone, OpMultiRead: evidenceNone,
	} {
		for i, code := range codes {
			got, expect := shows(op, code), want
			if i >= agreed || op == OpSync && code != CodeOK {
				expect = evidenceNone
			}
			if got != expect {
				t.Errorf("op %d, code %d: %v, want %v", op, code, got, expect)
			}
		}
	}
}
