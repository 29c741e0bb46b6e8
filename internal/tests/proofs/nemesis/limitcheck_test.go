//go:build linux

package nemesis

import (
	"math"
	"testing"
)

// leases adds a hold of n leases with two looks, of a contender that was let in by a listing
// that it asked for at view.
func (h *history) leases(worker, n int, view, from, to int64) {
	turn := len(h.events) + 1
	h.turn(func(e *event) { e.Turn, e.claim = turn, claim{Weight: n, View: view} }, worker, from, to)
}

// turn adds a hold of one turn with two looks.
func (h *history) turn(set func(*event), worker int, from, to int64) {
	var like event
	set(&like)
	for _, e := range []event{
		{What: eventGot, From: from - 1, To: from},
		{What: eventLook, From: from, To: from + 1, Held: true},
		{What: eventLook, From: to - 1, To: to, Held: true},
		{What: eventFree, From: to, To: to + 1},
	} {
		e.Worker, e.Life, e.Turn, e.claim = worker, 1, like.Turn, like.claim
		h.events = append(h.events, e)
	}
}

// resize adds a Resize that returns at a time, and is settled at another; 0: it is not.
func (h *history) resize(limit int, call, ret, settled int64) {
	h.resizeOf(0, limit, call, ret, settled)
}

func (h *history) resizeOf(worker, limit int, call, ret, settled int64) {
	turn := len(h.events) + 1
	add := func(what string, from, to int64) {
		h.events = append(h.events, event{Worker: worker, Life: 1, Turn: turn, What: what, From: from, To: to, Limit: limit})
	}
	add(eventResizing, call, call)
	if ret > 0 {
		add(eventResized, call, ret)
	}
	if settled > 0 {
		add(eventSettled, ret, settled)
	}
}

// TestNemesis relies on this for semaphores: the checks find violations, and nothing in a correct
// history. The limit is 3 unless it is changed.
func TestSemaphoreChecks(t *testing.T) {
	for name, tt := range map[string]struct {
		write  func(*history)
		deaths map[lifeID]int64
		// the findings:
		tooMany, illegal bool
	}{
		"as many as there are": {write: func(h *history) {
			h.leases(1, 2, 9, 10, 30)
			h.leases(2, 1, 9, 11, 30)
			h.leases(3, 3, 31, 40, 50)
		}},
		"one too many": {write: func(h *history) {
			h.leases(1, 2, 9, 10, 30)
			h.leases(2, 2, 9, 20, 40)
		}, tooMany: true, illegal: true},
		"one look each, at once": {write: func(h *history) {
			h.leases(1, 2, 9, 10, 30)
			h.leases(2, 1, 9, 10, 30)
			h.add(3, eventGot, 18, 19, func(e *event) { e.Weight = 1 })
			h.add(3, eventLook, 19, 40, func(e *event) { e.Held, e.Weight = true, 1 })
		}},
		"more by a higher limit": {write: func(h *history) {
			h.leases(1, 3, 9, 10, 90)
			h.resize(5, 20, 25, 26)
			h.leases(2, 2, 21, 30, 90)
		}},
		"more before the limit is higher": {write: func(h *history) {
			h.leases(1, 3, 9, 10, 90)
			h.leases(2, 2, 11, 30, 90)
			h.resize(5, 40, 45, 46)
		}, tooMany: true, illegal: true},
		"too many for the higher limit": {write: func(h *history) {
			h.leases(1, 3, 9, 10, 90)
			h.resize(4, 20, 25, 26)
			h.leases(2, 2, 27, 30, 90)
		}, tooMany: true, illegal: true},
		"let in before the limit is lower": {write: func(h *history) {
			h.leases(1, 1, 9, 10, 90)
			h.leases(2, 2, 9, 20, 90)
			h.resize(1, 40, 45, 46)
			h.leases(3, 1, 90, 95, 99)
		}},
		"too many after the limit is lower": {write: func(h *history) {
			h.leases(1, 1, 9, 10, 90)
			h.resize(1, 40, 45, 46)
			h.leases(2, 1, 47, 50, 90)
		}, tooMany: true, illegal: true},
		"while the limit becomes lower": {write: func(h *history) {
			h.leases(1, 1, 9, 10, 90)
			h.resize(1, 40, 60, 61)
			h.leases(2, 1, 42, 50, 90)
		}},
		"by a server that lags": {write: func(h *history) {
			h.leases(1, 1, 9, 10, 90)
			h.resize(1, 40, 45, 70)
			h.leases(2, 1, 47, 50, 90)
		}},
		"by a server that is not known to follow": {write: func(h *history) {
			h.leases(1, 1, 9, 10, 90)
			h.resize(1, 40, 45, 0)
			h.leases(2, 1, 47, 50, 90)
		}},
		"told late": {write: func(h *history) {
			h.leases(1, 1, 9, 10, 90)
			h.resize(1, 40, 45, 46)
			h.leases(2, 1, 39, 60, 90)
		}},
		// Schedules with Resize: a contender behind is let in under a higher limit. A contender
		// ahead of it does not see this, and comes in after the limit is lower.
		"up and down again, and one ahead comes back": {write: func(h *history) {
			h.resize(1, 1, 2, 3)
			h.leases(1, 1, 9, 10, 90)
			h.resize(3, 20, 25, 26)
			h.leases(3, 1, 27, 30, 90)
			h.resize(2, 40, 45, 46)
			h.leases(2, 1, 50, 60, 90)
		}, tooMany: true, illegal: true},
		"down, and one ahead comes back": {write: func(h *history) {
			h.leases(1, 3, 9, 10, 20)
			h.leases(3, 1, 21, 30, 90)
			h.leases(4, 1, 21, 30, 90)
			h.resize(1, 40, 45, 46)
			h.leases(2, 1, 50, 60, 90)
		}, tooMany: true, illegal: true},
		"two limits at once, by the higher": {write: func(h *history) {
			h.resize(1, 10, 30, 31)
			h.resize(5, 10, 30, 31)
			h.leases(1, 5, 40, 50, 60)
		}},
		"two limits at once, by either": {write: func(h *history) {
			h.resize(1, 10, 30, 31)
			h.resize(5, 10, 30, 31)
			h.leases(1, 1, 40, 50, 90)
			h.leases(2, 1, 60, 61, 90)
			h.resize(1, 64, 65, 66)
			h.leases(3, 1, 67, 70, 90)
		}, tooMany: true, illegal: true},
		"a killed Resize that may have been": {write: func(h *history) {
			h.resize(5, 20, 0, 0)
			h.leases(1, 5, 60, 70, 90)
		}, deaths: map[lifeID]int64{{0, 1}: 30, {1, 1}: 99}},
		"a killed Resize that can have been no more": {write: func(h *history) {
			h.resize(5, 20, 0, 0)
			h.leases(1, 5, 60, 70, 90)
			h.resizeOf(2, 3, 40, 45, 46)
		}, deaths: map[lifeID]int64{{0, 1}: 30, {1, 1}: 99, {2, 1}: 99}, tooMany: true, illegal: true},
		"killed with its leases": {write: func(h *history) {
			h.leases(1, 3, 9, 10, 20)
			h.events = h.events[:len(h.events)-1]
			h.leases(2, 3, 25, 30, 40)
		}, deaths: map[lifeID]int64{{1, 1}: 28, {2, 1}: 99}},
		"lost, and did not know": {write: func(h *history) {
			h.leases(1, 1, 9, 10, 60)
			h.leases(2, 3, 15, 20, 40)
		}, tooMany: true, illegal: true},
	} {
		var h history
		tt.write(&h)
		v := judgeSemaphore(h.events, spans(h.events, tt.deaths), tt.deaths)
		if got := len(v.violations) > 0; got != tt.tooMany {
			t.Errorf("%s: too many is %v: %q", name, got, v.violations)
		}
		if got := len(v.illegal) > 0; got != tt.illegal {
			t.Errorf("%s: linearizable is %v", name, !got)
		}
		if v.undecided > 0 {
			t.Errorf("%s: not decided", name)
		}
	}
}

// A history of a semaphore that is checked in pieces is checked as if in one, with what the
// pieces before it leave behind: a holder, and a limit.
func TestSemaphorePieces(t *testing.T) {
	var h history
	h.leases(1, 1, 1, 2, math.MaxInt32)
	h.resize(2, 10, 20, 21)
	for i := range int64(3 * pieceSize) {
		h.leases(2, 1, 100*i+50, 100*i+60, 100*i+70)
	}
	check := func() []string { return judgeSemaphore(h.events, spans(h.events, nil), nil).illegal }
	if bad := check(); len(bad) > 0 {
		t.Error(bad)
	}
	h.leases(3, 2, 100*pieceSize+51, 100*pieceSize+52, 100*pieceSize+53)
	if bad := check(); len(bad) != 1 {
		t.Errorf("found %q, want one", bad)
	}
}
