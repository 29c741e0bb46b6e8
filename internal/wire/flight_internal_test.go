package wire

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
)

// Answers come in the order of requests.
func TestFlight(t *testing.T) {
	var d flight
	now := time.Now()
	ask := func(xids ...int32) {
		for _, xid := range xids {
			now = now.Add(time.Nanosecond)
			d.Push(clock.Sending{Xid: xid, Op: codec.OpSync, At: now})
		}
	}
	good := func(xids ...int32) {
		t.Helper()
		for _, xid := range xids {
			if s, err := d.answered(xid, codec.CodeOK); err != nil || s.Xid != xid {
				t.Fatalf("answer to %d: %+v, %v", xid, s, err)
			}
		}
	}
	bad := func(xid int32, says string) {
		t.Helper()
		if _, err := d.answered(xid, codec.CodeOK); !errors.Is(err, codec.ErrBadFrame) || !strings.Contains(err.Error(), says) {
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
	d.Push(clock.Sending{Xid: 1, Op: codec.OpSync, At: now})
	d.Push(clock.Sending{Xid: 2, Op: codec.OpSync, At: now})
	d.Push(clock.Sending{Xid: 3, Op: codec.OpSync, At: now.Add(1)})
	bad(3, "when that to 1 was due")
	good(2, 1, 3) // sent at one instant, the first two
}

// With enableEagerACLCheck a server refuses some writes before it answers earlier requests.
func TestFlightHasty(t *testing.T) {
	for _, c := range []struct {
		op, code int32
		ok       bool
	}{
		{codec.OpCreate, codec.CodeNoAuth, true},
		{codec.OpCreate, codec.CodeInvalidACL, true},
		{codec.OpCreate2, codec.CodeNoAuth, true},
		{codec.OpDelete, codec.CodeNoAuth, true},
		{codec.OpSetData, codec.CodeNoAuth, true},
		{codec.OpSetACL, codec.CodeInvalidACL, true},
		{codec.OpCreate, codec.CodeOK, false},
		{codec.OpDelete, codec.CodeNoNode, false},
		{codec.OpMulti, codec.CodeNoAuth, false},
		{codec.OpCreateContainer, codec.CodeNoAuth, false},
		{codec.OpGetData, codec.CodeNoAuth, false},
		{codec.OpSync, codec.CodeInvalidACL, false},
		{codec.OpCreateContainer, codec.CodeUnimplemented, true},
		{codec.OpCreateTTL, codec.CodeUnimplemented, true},
		{codec.OpCreate, codec.CodeUnimplemented, false},
	} {
		var f flight
		now := time.Now()
		f.Push(clock.Sending{Xid: 1, Op: codec.OpCreate, At: now})
		f.Push(clock.Sending{Xid: 2, Op: c.op, At: now.Add(1)})
		s, err := f.answered(2, c.code)
		if (err == nil) != c.ok {
			t.Errorf("op %d, code %d: %v, want ok: %v", c.op, c.code, err, c.ok)
		}
		if !c.ok {
			continue
		}
		if s.Xid != 2 {
			t.Errorf("got the answer to %d", s.Xid)
		}
		if s, err := f.answered(1, codec.CodeOK); err != nil || s.Xid != 1 {
			t.Errorf("then: %+v, %v", s, err)
		}
	}
}
