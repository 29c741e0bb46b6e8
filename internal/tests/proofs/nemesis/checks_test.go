//go:build linux

package nemesis

import (
	"math"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/go-zookeeper/zk"
)

// story is a journal that is written by hand: turns of workers of one life.
type story [][]event

// look is one look of the first turn of a worker.
func look(worker int, from, to int64, held bool) []event {
	return []event{{Worker: worker, Life: 1, Turn: 1, What: eventLook, From: from, To: to, Held: held}}
}

func free(worker int, from, to int64) []event {
	return []event{{Worker: worker, Life: 1, Turn: 1, What: eventFree, From: from, To: to}}
}

// holds is a turn with two looks, and its token in between. Its release has not returned. It is numbered later.
func holds(worker int, c claim, token, from, to int64) []event {
	all := []event{
		{What: eventGot, From: from - 1, To: from},
		{What: eventLook, From: from, To: from + 1, Held: true},
		{What: eventToken, From: from + 1, To: from + 1, Token: token},
		{What: eventLook, From: to - 1, To: to, Held: true},
	}
	for i := range all {
		all[i].Worker, all[i].Life, all[i].claim = worker, 1, c
	}
	return all
}

// uses is a turn that is over when it has been released.
func uses(worker int, c claim, token, from, to int64) []event {
	return append(holds(worker, c, token, from, to), event{Worker: worker, Life: 1, What: eventFree, From: to, To: to + 1, claim: c})
}

func leased(worker, n int, from, to int64) []event {
	return uses(worker, claim{Weight: n}, 0, from, to)
}

func write(worker int, token, from, to int64) []event {
	return uses(worker, claim{}, token, from, to)
}

func read(worker int, token, from, to int64) []event {
	return uses(worker, claim{Weight: 1}, token, from, to)
}

// downgrades is a hold that is a writer's up to a time, and a reader's after that.
func downgrades(worker int, from, until, to int64) []event {
	down := event{Worker: worker, Life: 1, What: eventDown, From: until, To: until + 1, claim: claim{Weight: 1}}
	return slices.Concat(holds(worker, claim{}, 0, from, until), []event{down}, read(worker, 0, until+1, to)[1:])
}

// died is the death of a worker, which is no event.
func died(worker int, at int64) []event {
	return []event{{What: "died", Worker: worker, Life: 1, To: at}}
}

func (s story) deaths() map[lifeID]int64 {
	at := make(map[lifeID]int64)
	for _, e := range s.events() {
		if e.What == "died" {
			at[e.id().lifeID] = e.To
		}
	}
	return at
}

// events numbers the turns.
func (s story) events() (all []event) {
	for i, turn := range s {
		for _, e := range turn {
			if e.Turn == 0 {
				e.Turn = i + 2
			}
			all = append(all, e)
		}
	}
	return all
}

var (
	mutexRule  = rule{}
	sharedRule = rule{shared: true}
	rwRule     = rule{limit: unlimited}
	keptRWRule = rule{limit: unlimited, shared: true}
	semRule    = rule{limit: 3}
)

// TestNemesis relies on this: the checks find violations, and nothing in a correct history.
func TestChecks(t *testing.T) {
	const fits, bad = false, true
	for _, tt := range []struct {
		rule
		name  string
		wrong bool
		story
	}{
		{mutexRule, "one after another", fits, story{write(0, 1, 10, 20), write(1, 2, 24, 30)}},
		{mutexRule, "two at once", bad, story{write(0, 1, 10, 20), write(1, 2, 15, 30)}},
		{mutexRule, "one during another", bad, story{write(1, 2, 15, 18), write(0, 1, 10, 40)}},
		{mutexRule, "lost, and knew it", fits, story{
			look(0, 10, 11, true), look(0, 19, 20, true), write(1, 2, 30, 40), look(0, 50, 51, false),
			free(0, 52, 53),
		}},
		{mutexRule, "stopped, and did not know", bad, story{
			look(0, 10, 11, true), write(1, 2, 30, 40), look(0, 50, 51, true), free(0, 52, 53),
		}},
		{mutexRule, "one look each, at once", fits, story{
			look(0, 10, 20, true), free(0, 30, 31), look(1, 11, 21, true), free(1, 12, 22),
		}},
		{mutexRule, "tokens fall", bad, story{write(0, 2, 10, 20), write(1, 1, 30, 40)}},
		{mutexRule, "killed", fits, story{
			holds(0, claim{}, 1, 10, 20), holds(1, claim{}, 2, 30, 40), died(0, 25), died(1, 99),
		}},
		{sharedRule, "a token again, in one process", fits, story{write(1, 7, 10, 20), write(1, 7, 30, 40)}},
		{sharedRule, "a token again, in two", bad, story{write(1, 7, 10, 20), write(2, 7, 30, 40)}},
		{mutexRule, "a token again, of a mutex", bad, story{write(1, 7, 10, 20), write(1, 7, 30, 40)}},
		{keptRWRule, "a writer's token again", fits, story{write(1, 7, 10, 20), write(1, 7, 30, 40)}},
		{keptRWRule, "a writer's token again, in two", bad, story{write(1, 7, 10, 20), write(2, 7, 30, 40)}},
		{rwRule, "a writer's token again, not kept", bad, story{write(1, 7, 10, 20), write(1, 7, 30, 40)}},
		{mutexRule, "two keys", fits, story{uses(1, claim{Of: 1}, 7, 10, 30), uses(2, claim{Of: 2}, 7, 20, 40)}},
		{mutexRule, "one key", bad, story{uses(1, claim{Of: 2}, 7, 10, 30), uses(2, claim{Of: 2}, 8, 20, 40)}},
		{rwRule, "readers together, then writers one by one", fits, story{
			read(0, 1, 10, 30), read(1, 2, 11, 40), read(2, 3, 12, 20), write(0, 4, 50, 60), write(1, 5, 70, 80),
			read(0, 6, 90, 95),
		}},
		{rwRule, "two writers", bad, story{write(0, 1, 10, 30), write(1, 2, 20, 40)}},
		{rwRule, "a reader beside a writer", bad, story{write(0, 1, 10, 30), read(1, 2, 20, 40)}},
		{rwRule, "a writer beside a reader", bad, story{read(1, 1, 10, 30), read(2, 2, 11, 12), write(0, 3, 20, 40)}},
		{rwRule, "a reader during a writer", bad, story{write(0, 1, 10, 90), read(1, 2, 20, 40)}},
		{rwRule, "a downgrade, with readers and then a writer", fits, story{
			downgrades(0, 10, 30, 60), read(1, 2, 40, 70), write(2, 3, 80, 90),
		}},
		{rwRule, "a reader before the downgrade", bad, story{downgrades(0, 10, 30, 60), read(1, 2, 20, 70)}},
		{rwRule, "a writer after the downgrade", bad, story{downgrades(0, 10, 30, 60), write(1, 2, 40, 70)}},
		{rwRule, "a writer in the middle of the downgrade", bad, story{
			downgrades(0, 10, 30, 60), look(1, 30, 31, true), free(1, 31, 32),
		}},
		{rwRule, "a writer's token is old", bad, story{read(0, 5, 10, 20), write(1, 4, 30, 40)}},
		{rwRule, "a reader's token is older than a writer's", bad, story{write(0, 5, 10, 20), read(1, 4, 30, 40)}},
		{rwRule, "readers in any order", fits, story{read(0, 5, 10, 20), holds(1, claim{Weight: 1}, 0, 30, 40)}},
		{semRule, "as many as there are", fits, story{leased(1, 2, 10, 30), leased(2, 1, 11, 30), leased(3, 3, 40, 50)}},
		{semRule, "one too many", bad, story{leased(1, 2, 10, 30), leased(2, 2, 20, 40)}},
		{semRule, "killed with its leases", fits, story{
			holds(1, claim{Weight: 3}, 0, 10, 20), leased(2, 3, 30, 40), died(0, 99), died(1, 28), died(2, 99),
		}},
		{semRule, "leases that were lost, and did not know", bad, story{leased(1, 1, 10, 60), leased(2, 3, 20, 40)}},
	} {
		v := judge(tt.rule, tt.events(), tt.deaths())
		if got := len(v.violations) > 0; got != tt.wrong || len(v.other) > 0 {
			t.Errorf("%s: violations %q and %q, want some: %v", tt.name, v.violations, v.other, tt.wrong)
		}
	}
	one := []event{{What: eventMissed, Error: text(zk.ErrNoNode)}, {What: eventMissed, Error: "lock /a: " + text(zk.ErrNoAuth)}}
	if v := judge(mutexRule, one, nil); len(v.other) != 1 {
		t.Errorf("%q, want one stranger", v.other)
	}
}

// A history that is checked in pieces is checked as if in one, with what the pieces before it leave behind.
func TestPieces(t *testing.T) {
	for name, tt := range map[string]struct {
		rule
		write        func(i int64) story
		first, wrong []event
	}{
		"mutex": {mutexRule,
			func(i int64) story { return story{write(1, i+2, 100*i+10, 100*i+30)} },
			write(2, 1, 1, 2),
			write(2, 1, 300*pieceSize+1, 300*pieceSize+2), // its token is of the first piece
		},
		"rwlock": {rwRule,
			func(i int64) story {
				return story{read(1, i+2, 100*i+10, 100*i+60), read(2, i+2, 100*i+20, 100*i+70)}
			},
			read(4, 1, 1, math.MaxInt32),
			write(3, 0, 100*pieceSize+80, 100*pieceSize+90), // beside the reader of the first piece
		},
		"semaphore": {semRule,
			func(i int64) story { return story{leased(2, 1, 100*i+60, 100*i+70)} },
			leased(1, 1, 2, math.MaxInt32),
			leased(3, 3, 100*pieceSize+52, 100*pieceSize+53),
		},
	} {
		h := story{tt.first}
		for i := range int64(3 * pieceSize) {
			h = append(h, tt.write(i)...)
		}
		check := func() []string {
			bad, _ := linearizable(history(spans(h.events(), nil)[0]), tt.rule)
			return bad
		}
		if bad := check(); len(bad) > 0 {
			t.Errorf("%s: %q", name, bad)
		}
		h = append(h, tt.wrong)
		if bad := check(); len(bad) != 1 {
			t.Errorf("%s: found %q, want one", name, bad)
		}
	}
	if n := quiet([]porcupine.Operation{{Call: 1, Return: 5}, {Call: 2, Return: 3}, {Call: 5, Return: 6}, {Call: 7, Return: 8}}, 1); n != 3 {
		t.Errorf("a piece of %d operations, want 3", n)
	}
}
