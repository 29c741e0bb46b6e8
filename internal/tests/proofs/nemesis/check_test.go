//go:build linux

package nemesis

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// history writes a journal by hand: turns of workers of one life, one turn each.
type history struct{ events []event }

func (h *history) add(worker int, what string, from, to int64, set func(*event)) {
	e := event{Worker: worker, Life: 1, Turn: 1, What: what, From: from, To: to}
	if set != nil {
		set(&e)
	}
	h.events = append(h.events, e)
}

func held(e *event) { e.Held = true }

func withToken(token int64) func(*event) {
	return func(e *event) { e.Token = token }
}

func stale(e *event) { e.Stale, e.Token, e.Value = true, 1, 1 }

// hold adds a hold with two looks, and marks in between.
func (h *history) hold(worker int, token, from, to int64) {
	h.add(worker, eventLook, from, from+1, held)
	h.add(worker, eventToken, from+1, from+2, withToken(token))
	h.add(worker, eventMark, from+2, from+2, withToken(token))
	h.add(worker, eventLook, to-1, to, held)
}

// TestNemesis relies on this: each check finds its violations, and nothing in a correct history.
func TestChecks(t *testing.T) {
	for name, tt := range map[string]struct {
		write  func(*history)
		deaths map[lifeID]int64
		// the findings:
		overlap, refused, disorder, illegal bool
	}{
		"one after another": {write: func(h *history) {
			h.hold(0, 1, 10, 20)
			h.add(0, eventFree, 21, 25, nil)
			h.hold(1, 2, 24, 30)
			h.add(1, eventFree, 31, 32, nil)
		}},
		"two at once": {write: func(h *history) {
			h.hold(0, 1, 10, 20)
			h.hold(1, 2, 15, 30)
		}, overlap: true, illegal: true},
		"one during another": {write: func(h *history) {
			h.hold(1, 2, 15, 18)
			h.hold(0, 1, 10, 40)
		}, overlap: true, disorder: true, illegal: true},
		"lost, and knew it": {write: func(h *history) {
			h.hold(0, 1, 10, 20)
			h.hold(1, 2, 30, 40)
			h.add(1, eventFree, 41, 42, nil)
			h.add(0, eventLook, 50, 51, nil)
			h.add(0, eventFree, 52, 53, nil)
		}},
		"stopped, and did not know": {write: func(h *history) {
			h.hold(0, 1, 10, 20)
			h.hold(1, 2, 30, 40)
			h.add(1, eventFree, 41, 42, nil)
			h.add(0, eventLook, 50, 51, held)
			h.add(0, eventFree, 52, 53, nil)
		}, overlap: true, illegal: true},
		"one look each, at once": {write: func(h *history) {
			h.add(0, eventLook, 10, 20, held)
			h.add(0, eventFree, 30, 31, nil)
			h.add(1, eventLook, 11, 21, held)
			h.add(1, eventFree, 12, 22, nil)
		}},
		"tokens fall": {write: func(h *history) {
			h.hold(0, 2, 10, 20)
			h.add(0, eventFree, 21, 22, nil)
			h.hold(1, 1, 30, 40)
			h.add(1, eventFree, 41, 42, nil)
		}, disorder: true, illegal: true},
		"refused and holds": {write: func(h *history) {
			h.add(0, eventWrite, 10, 11, stale)
			h.add(0, eventLook, 12, 13, held)
		}, refused: true},
		"refused and knows why": {write: func(h *history) {
			h.add(0, eventLook, 8, 9, held)
			h.add(0, eventWrite, 10, 11, stale)
			h.add(0, eventLook, 12, 13, nil)
		}},
		"killed": {write: func(h *history) {
			h.hold(0, 1, 10, 20)
			h.hold(1, 2, 30, 40)
		}, deaths: map[lifeID]int64{{0, 1}: 25, {1, 1}: 99}},
		"late mark": {write: func(h *history) {
			h.add(0, eventLook, 10, 11, held)
			h.hold(1, 2, 30, 40)
			h.add(0, eventMark, 12, 12, withToken(1))
			h.add(0, eventLook, 41, 42, nil)
			h.add(1, eventFree, 43, 44, nil)
		}},
	} {
		var h history
		tt.write(&h)
		all := spans(h.events, tt.deaths)
		bad, unknown := linearizable(lockHistory(all), lockState{}, lockModel, afterLock)
		for what, c := range map[string]struct{ want, got bool }{
			"overlap":      {tt.overlap, len(overlaps(all)) > 0},
			"refused":      {tt.refused, len(refusedHolders(h.events)) > 0},
			"disorder":     {tt.disorder, len(disorder(h.events)) > 0},
			"linearizable": {!tt.illegal, len(bad) == 0},
		} {
			if c.want != c.got {
				t.Errorf("%s: %s is %v, want %v", name, what, c.got, c.want)
			}
		}
		if unknown > 0 {
			t.Errorf("%s: not decided", name)
		}
	}
}

func TestRegisterModel(t *testing.T) {
	read := func(token, value, from, to int64) event {
		return event{What: eventRead, Token: token, Value: value, From: from, To: to}
	}
	write := func(token, value, from, to int64, stale bool) event {
		return event{What: eventWrite, Token: token, Value: value, From: from, To: to, Stale: stale}
	}
	reached := map[int64]access{7: {at: 5, token: 1, value: 7}}
	for name, tt := range map[string]struct {
		events []event
		writes map[int64]access
		legal  bool
	}{
		"read what was written": {[]event{write(1, 10, 1, 2, false), read(1, 10, 3, 4)}, nil, true},
		"read what was before":  {[]event{write(1, 10, 1, 2, false), read(0, 0, 3, 4)}, nil, false},
		"lower accepted":        {[]event{write(2, 10, 1, 2, false), write(1, 11, 3, 4, false)}, nil, false},
		"lower refused":         {[]event{write(2, 10, 1, 2, false), write(1, 11, 3, 4, true)}, nil, true},
		"higher refused":        {[]event{write(2, 10, 1, 2, false), write(3, 11, 3, 4, true)}, nil, false},
		"lower at once":         {[]event{write(2, 10, 1, 9, false), write(1, 11, 3, 4, false)}, nil, true},
		"no answer, reached":    {[]event{read(1, 7, 6, 7)}, reached, true},
		"read before it":        {[]event{read(1, 7, 3, 4)}, reached, false},
	} {
		bad, _ := linearizable(registerHistory(tt.events, tt.writes), registerState{}, registerModel, afterRegister)
		if legal := len(bad) == 0; legal != tt.legal {
			t.Errorf("%s: linearizable is %v", name, legal)
		}
	}
}

// A history checked in pieces is checked as if in one.
func TestPieces(t *testing.T) {
	var h history
	for i := range int64(3 * pieceSize) {
		h.events = append(h.events,
			event{Turn: int(i) + 1, What: eventLook, Held: true, From: 10 * i, To: 10*i + 1},
			event{Turn: int(i) + 1, What: eventToken, Token: i + 1},
			event{Turn: int(i) + 1, What: eventLook, Held: true, From: 10*i + 3, To: 10*i + 4},
			event{Turn: int(i) + 1, What: eventFree, From: 10*i + 5, To: 10*i + 6})
	}
	check := func() []string {
		bad, _ := linearizable(lockHistory(spans(h.events, nil)), lockState{}, lockModel, afterLock)
		return bad
	}
	if bad := check(); len(bad) > 0 {
		t.Error(bad)
	}
	h.events[len(h.events)-3].Token = 1 // of the first piece, in the last
	if bad := check(); len(bad) != 1 {
		t.Errorf("found %q, want one", bad)
	}
	if n := quiet([]porcupine.Operation{{Call: 1, Return: 5}, {Call: 2, Return: 3}, {Call: 5, Return: 6}, {Call: 7, Return: 8}}, 1); n != 3 {
		t.Errorf("a piece of %d operations, want 3", n)
	}
}
