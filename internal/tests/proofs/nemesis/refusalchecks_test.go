//go:build linux

package nemesis

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// refusalTimeout is the timeout of sessions in these histories, in which time goes by from 1,000 to 2,000.
const refusalTimeout = 10 * time.Nanosecond

// asks adds a turn of a lock that can refuse, up to an event.
func (h *history) asks(worker int, from int64, last event) {
	turn := []event{{What: eventAsks, From: from, To: from}}
	if last.What == eventFree {
		turn = append(turn, event{What: eventGot, From: from, To: last.From, claim: last.claim})
	}
	for _, e := range append(turn, last) {
		e.Worker, e.Life, e.Turn = worker, 1, 1
		h.events = append(h.events, e)
	}
}

// freed is a release, and turnedAway a refusal.
func freed(to int64) event { return event{What: eventFree, From: to - 1, To: to} }

func turnedAway(from, to int64, how refused) event {
	return event{What: eventMissed, From: from, To: to, Refused: &how}
}

// TestNemesis relies on this for refusals.
func TestRefusalChecks(t *testing.T) {
	reader := claim{Reads: true}
	for name, tt := range map[string]struct {
		write  func(*history)
		deaths map[lifeID]int64
		want   int
	}{
		"as many ahead": {write: func(h *history) {
			h.asks(1, 1000, freed(1200))
			h.asks(2, 1010, freed(1220))
			h.asks(3, 1100, turnedAway(1100, 1110, refused{Ahead: 2, Gone: true}))
		}},
		"one too few": {write: func(h *history) {
			h.asks(1, 1000, freed(1080))
			h.asks(2, 1010, freed(1220))
			h.asks(3, 1100, turnedAway(1100, 1110, refused{Ahead: 2, Gone: true}))
		}, want: 1},
		"one more comes in time": {write: func(h *history) {
			h.asks(2, 1010, freed(1220))
			h.asks(1, 1105, freed(1300))
			h.asks(3, 1100, turnedAway(1100, 1110, refused{Ahead: 2, Gone: true}))
		}},
		"one more comes too late": {write: func(h *history) {
			h.asks(2, 1010, freed(1220))
			h.asks(1, 1111, freed(1300))
			h.asks(3, 1100, turnedAway(1100, 1110, refused{Ahead: 2, Gone: true}))
		}, want: 1},
		"another that is refused": {write: func(h *history) {
			h.asks(1, 1000, freed(1200))
			h.asks(2, 1050, turnedAway(1050, 1105, refused{Ahead: 1, Gone: true}))
			h.asks(3, 1100, turnedAway(1100, 1110, refused{Ahead: 2, Gone: true}))
		}},
		"a release that was not confirmed": {write: func(h *history) {
			last := freed(1050)
			last.Error = "pending"
			h.asks(1, 1000, last)
			h.asks(3, 1100, turnedAway(1100, 1110, refused{Ahead: 1, Gone: true}))
			h.asks(4, 1500, turnedAway(1500, 1510, refused{Ahead: 1, Gone: true}))
		}, want: 1},
		"a session before": {write: func(h *history) {
			last := freed(1050)
			last.Moved = true
			h.asks(1, 1000, last)
			h.asks(3, 1100, turnedAway(1100, 1110, refused{Ahead: 1, Gone: true}))
			h.asks(4, 1500, turnedAway(1500, 1510, refused{Ahead: 1, Gone: true}))
		}, want: 1},
		"killed": {write: func(h *history) {
			h.asks(1, 1000, event{What: eventAsks, From: 1000, To: 1000})
			h.asks(3, 1100, turnedAway(1100, 1110, refused{Ahead: 1, Gone: true}))
			h.asks(4, 1500, turnedAway(1500, 1510, refused{Ahead: 1, Gone: true}))
		}, deaths: map[lifeID]int64{{1, 1}: 1020}, want: 1},
		"a try, just after a holder": {write: func(h *history) {
			h.asks(1, 1000, freed(1095))
			h.asks(3, 1100, turnedAway(1100, 1110, refused{Ahead: 1, Gone: true}))
		}},
		"a try, long after": {write: func(h *history) {
			h.asks(1, 1000, freed(1080))
			h.asks(3, 1100, turnedAway(1100, 1110, refused{Ahead: 1, Gone: true}))
		}, want: 1},
		"a reader behind readers": {write: func(h *history) {
			reads, refusal := freed(1200), turnedAway(1100, 1110, refused{Ahead: 1, Gone: true})
			reads.claim, refusal.claim = reader, reader
			h.asks(1, 1000, reads)
			h.asks(3, 1100, refusal)
		}, want: 1},
		"alone": {write: func(h *history) {
			alone := turnedAway(1100, 1110, refused{Ahead: 1, Gone: true})
			alone.Alone = true
			h.asks(1, 1000, freed(1200))
			h.asks(3, 1100, alone)
		}, want: 1},
	} {
		var h history
		tt.write(&h)
		if found := groundless(h.events, tt.deaths, refusalTimeout); len(found) != tt.want {
			t.Errorf("%s: found %q, want %d", name, found, tt.want)
		}
	}
}

// TestNemesis relies on this for identities.
func TestStrangers(t *testing.T) {
	none := event{What: eventMissed, Error: "lock /a: " + errNoToken.Error()}
	bad := event{What: eventMissed, Error: fmt.Errorf("lock /a: %w", zk.ErrNoAuth).Error()}
	if found := strangers([]event{none, bad}); len(found) != 1 {
		t.Errorf("found %q, want one", found)
	}
}

// The resolver gives all sorts of answers, and leaves those that it has given as they are.
func TestResolver(t *testing.T) {
	servers := []string{"a", "b", "c"}
	r := resolver{servers, rand.New(rand.NewPCG(1, 2))}
	found := make(map[string]bool)
	for range 200 {
		some, err := r.resolve(t.Context())
		found[fmt.Sprint(some, err)] = true
	}
	if !found[fmt.Sprint(servers, nil)] || !found[fmt.Sprint([]string(nil), errResolver)] || len(found) != 9 {
		t.Errorf("answers: %v", found)
	}
}
