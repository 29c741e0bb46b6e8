//go:build linux

package nemesis

import "testing"

func (h *history) writes(worker int, token, from, to int64) {
	h.claimed(worker, token, from, to, claim{})
}

func (h *history) reads(worker int, token, from, to int64) {
	h.claimed(worker, token, from, to, claim{Reads: true})
}

// claimed adds a hold with two looks, and its token in between.
func (h *history) claimed(worker int, token, from, to int64, c claim) {
	turn := len(h.events) + 1
	h.turn(func(e *event) { e.Turn, e.claim = turn, c }, worker, from, to)
	h.events = append(h.events, event{Worker: worker, Life: 1, Turn: turn, What: eventToken, From: from, To: from, Token: token})
}

// downgrades adds a hold that is a writer's up to a time, and a reader's after that.
func (h *history) downgrades(worker int, from, until, to int64) {
	turn := len(h.events) + 1
	h.turn(func(e *event) { e.Turn, e.claim = turn, claim{} }, worker, from, until)
	h.events = h.events[:len(h.events)-1] // no release
	h.events = append(h.events, event{Worker: worker, Life: 1, Turn: turn, What: eventDown, From: until, To: until + 1})
	for _, e := range []event{
		{What: eventLook, From: until + 1, To: until + 2, Held: true},
		{What: eventLook, From: to - 1, To: to, Held: true},
		{What: eventFree, From: to, To: to + 1},
	} {
		e.Worker, e.Life, e.Turn, e.claim = worker, 1, turn, claim{Reads: true}
		h.events = append(h.events, e)
	}
}

// TestNemesis relies on this for read-write locks.
func TestRWChecks(t *testing.T) {
	for name, tt := range map[string]struct {
		write            func(*history)
		overlap, illegal bool
	}{
		"readers together, then writers one by one": {write: func(h *history) {
			h.reads(0, 1, 10, 30)
			h.reads(1, 2, 11, 40)
			h.reads(2, 3, 12, 20)
			h.writes(0, 4, 50, 60)
			h.writes(1, 5, 70, 80)
			h.reads(0, 6, 90, 95)
		}},
		"two writers": {write: func(h *history) {
			h.writes(0, 1, 10, 30)
			h.writes(1, 2, 20, 40)
		}, overlap: true, illegal: true},
		"a reader beside a writer": {write: func(h *history) {
			h.writes(0, 1, 10, 30)
			h.reads(1, 2, 20, 40)
		}, overlap: true, illegal: true},
		"a writer beside a reader": {write: func(h *history) {
			h.reads(1, 1, 10, 30)
			h.reads(2, 2, 11, 12)
			h.writes(0, 3, 20, 40)
		}, overlap: true, illegal: true},
		"a reader during a writer": {write: func(h *history) {
			h.writes(0, 1, 10, 90)
			h.reads(1, 2, 20, 40)
		}, overlap: true, illegal: true},
		"a downgrade, with readers and then a writer": {write: func(h *history) {
			h.downgrades(0, 10, 30, 60)
			h.reads(1, 2, 40, 70)
			h.writes(2, 3, 80, 90)
		}},
		"a reader before the downgrade": {write: func(h *history) {
			h.downgrades(0, 10, 30, 60)
			h.reads(1, 2, 20, 70)
		}, overlap: true, illegal: true},
		"a writer after the downgrade": {write: func(h *history) {
			h.downgrades(0, 10, 30, 60)
			h.writes(1, 2, 40, 70)
		}, overlap: true, illegal: true},
		"a writer in the middle of the downgrade": {write: func(h *history) {
			h.downgrades(0, 10, 30, 60)
			h.add(1, eventLook, 30, 31, held)
			h.add(1, eventFree, 31, 32, nil)
		}, illegal: true},
		"a writer's token is old": {write: func(h *history) {
			h.reads(0, 5, 10, 20)
			h.writes(1, 4, 30, 40)
		}, illegal: true},
		"a reader's token is older than a writer's": {write: func(h *history) {
			h.writes(0, 5, 10, 20)
			h.reads(1, 4, 30, 40)
		}, illegal: true},
		"readers in any order": {write: func(h *history) {
			h.reads(0, 5, 10, 20)
			h.reads(1, 4, 30, 40)
		}},
	} {
		var h history
		tt.write(&h)
		all := spans(h.events, nil)
		v := judgeRW(h.events, all, nil)
		if got := len(v.violations) > 0; got != tt.overlap {
			t.Errorf("%s: overlap is %v: %q", name, got, v.violations)
		}
		if got := len(v.illegal) > 0; got != tt.illegal {
			t.Errorf("%s: linearizable is %v", name, !got)
		}
		if v.undecided > 0 {
			t.Errorf("%s: not decided", name)
		}
	}
}

// A history of a read-write lock that is checked in pieces is checked as if in one.
func TestRWPieces(t *testing.T) {
	var h history
	h.reads(4, 1, 1, 1_000_000)
	for i := range int64(2 * pieceSize) {
		h.reads(1, i+2, 100*i+10, 100*i+60)
		h.reads(2, i+2, 100*i+20, 100*i+70)
	}
	check := func() []string { return judgeRW(h.events, spans(h.events, nil), nil).illegal }
	if bad := check(); len(bad) > 0 {
		t.Error(bad)
	}
	h.writes(3, 0, 100*pieceSize+80, 100*pieceSize+90) // beside the reader of the first piece
	if bad := check(); len(bad) != 1 {
		t.Errorf("found %q, want one", bad)
	}
}

// Several mutexes at one path are judged apart.
func TestBatchedChecks(t *testing.T) {
	for name, tt := range map[string]struct {
		of    [2]int
		legal bool
	}{
		"one mutex":   {[2]int{2, 2}, false},
		"two mutexes": {[2]int{1, 2}, true},
	} {
		var h history
		h.claimed(1, 7, 10, 30, claim{Of: tt.of[0]})
		h.claimed(2, 7, 20, 40, claim{Of: tt.of[1]})
		v := judgeBatched(h.events, spans(h.events, nil), nil)
		if got := len(v.violations) == 0 && len(v.illegal) == 0; got != tt.legal {
			t.Errorf("%s: legal is %v: %q, %q", name, got, v.violations, v.illegal)
		}
	}
}

// A local mutex gives one token to several holders of one process only, and so does a kept place.
func TestLocalTokens(t *testing.T) {
	for name, tt := range map[string]struct {
		workers [2]int
		legal   bool
	}{
		"one process":   {[2]int{1, 1}, true},
		"two processes": {[2]int{1, 2}, false},
	} {
		var h history
		h.writes(tt.workers[0], 7, 10, 20)
		h.writes(tt.workers[1], 7, 30, 40)
		all := spans(h.events, nil)
		if got := len(judgeLocal(h.events, all, nil).illegal) == 0; got != tt.legal {
			t.Errorf("%s: legal is %v", name, got)
		}
		if len(judgeMutex(h.events, all, nil).illegal) == 0 {
			t.Errorf("%s: two holders with one token pass for a mutex", name)
		}
		if got := len(judgeKeptRW(h.events, all, nil).illegal) == 0; got != tt.legal {
			t.Errorf("%s: for writers legal is %v", name, got)
		}
		if len(judgeRW(h.events, all, nil).illegal) == 0 {
			t.Errorf("%s: two writers with one token pass for a read-write lock", name)
		}
	}
}
