package decide

import (
	"testing"

	"github.com/turnstile-go/turnstile/kinds"
)

func TestBySight(t *testing.T) {
	type events = []Event
	for _, c := range []struct {
		what    string
		ahead   []int // weights; the last of them are watched
		watched events
		own     Event
		slack   int
		moves   bool
		want    Input
	}{
		{"nothing has happened", []int{1}, events{Stands}, Stands, 0, false, Quiet},
		{"the only one ahead left", []int{1}, events{Gone}, Stands, 0, false, Free},
		{"the predecessor left, the one before stands", []int{1, 1}, events{Stands, Gone}, Stands, 0, false, Quiet},
		{"the predecessor left, others are ahead", []int{1, 1, 1}, events{Stands, Gone}, Stands, 0, false, Stirred},
		{"the one before left", []int{1, 1}, events{Gone, Stands}, Stands, 0, false, Quiet},
		{"the one before left, others are ahead", []int{1, 1, 1}, events{Gone, Stands}, Stands, 0, false, Stirred},
		{"both left", []int{1, 1}, events{Gone, Gone}, Stands, 0, false, Free},
		{"both watched left, others are ahead", []int{1, 1, 1}, events{Gone, Gone}, Stands, 0, false, Stirred},
		{"a change grants nothing", []int{1}, events{Unclear}, Stands, 0, false, Stirred},
		{"a change beats a deletion", []int{1, 1}, events{Unclear, Gone}, Stands, 0, false, Stirred},

		{"one lighter is enough", []int{1, 1, 1}, events{Stands, Gone, Stands}, Stands, 2, false, Free},
		{"light ones are not", []int{3, 1, 1}, events{Stands, Gone, Gone}, Stands, 2, false, Quiet},
		{"the heavy one is", []int{3, 1, 1}, events{Gone, Stands, Stands}, Stands, 2, false, Free},
		{"what is not watched counts", []int{2, 1, 1}, events{Gone, Gone}, Stands, 1, false, Stirred},

		{"one that moves left", []int{1}, events{Gone}, Stands, 0, true, Stirred},
		{"one that moves stands", []int{1}, events{Stands}, Stands, 0, true, Quiet},

		{"own node deleted", []int{1}, events{Stands}, Gone, 0, false, Lost},
		{"own node and the predecessor deleted", []int{1}, events{Gone}, Gone, 0, false, Lost},
		{"own node deleted, another watch broken", []int{1}, events{Unclear}, Gone, 0, false, Lost},
		{"own watch broken", []int{1}, events{Stands}, Unclear, 0, false, Stirred},
		{"own data changed, predecessor deleted", []int{1}, events{Gone}, Unclear, 0, false, Stirred},
	} {
		t.Run(c.what, func(t *testing.T) {
			var ahead []Blocker
			for i, w := range c.ahead {
				ahead = append(ahead, Blocker{Node: kinds.Node{Name: string(rune('a' + i))}, Weight: w})
			}
			targets := ahead[len(ahead)-len(c.watched):]
			var seen []Sight
			for _, e := range c.watched {
				seen = append(seen, Sight{Event: e, Moves: c.moves})
			}
			if got := BySight(Weigh(ahead[:len(ahead)-len(targets)]), targets, seen, c.own, false, c.slack); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
			for i := range ahead {
				if ahead[i].Node.Name != string(rune('a'+i)) {
					t.Error("what it was given has changed")
				}
			}
		})
	}
}

// What the contenders ahead say. Others are ahead of these two.
func TestBySightOfOwners(t *testing.T) {
	type says int
	const (
		unknown says = iota
		waits
		served
	)
	type one struct {
		event Event
		says  says
	}
	for _, c := range []struct {
		what                string
		before, predecessor one
		want                Input
	}{
		{"the predecessor says nothing", one{Gone, unknown}, one{Stands, unknown}, Stirred},
		{"the predecessor waits", one{Gone, unknown}, one{Stands, waits}, Quiet},
		{"the predecessor holds", one{Gone, waits}, one{Stands, served}, Quiet},
		{"the predecessor has held", one{Gone, waits}, one{Gone, served}, Free},
		{"the predecessor has given up", one{Gone, unknown}, one{Gone, waits}, Stirred},
		{"the predecessor has given up, the one before waits", one{Stands, waits}, one{Gone, waits}, Quiet},
		{"the predecessor gave up, the one before holds", one{Stands, served}, one{Gone, waits}, Quiet},
		{"the predecessor gave up, the one before has held", one{Gone, served}, one{Gone, waits}, Free},
		{"the one before has held, the predecessor stands", one{Gone, served}, one{Stands, unknown}, Quiet},
		{"the watch on the holder broke", one{Gone, unknown}, one{Unclear, served}, Stirred},
	} {
		var seen []Sight
		for _, o := range []one{c.before, c.predecessor} {
			seen = append(seen, Sight{Event: o.event, Waits: o.says == waits, Served: o.says == served})
		}
		targets := []Blocker{{Node: kinds.Node{Name: "a"}, Weight: 1}, {Node: kinds.Node{Name: "b"}, Weight: 1}}
		if got := BySight(1, targets, seen, Stands, false, 0); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}

// A configuration that has changed, or may have, comes before anything that would grant, and after the
// loss of the place.
func TestBySightReconfigured(t *testing.T) {
	ahead := []Blocker{{Node: kinds.Node{Name: "a"}, Weight: 1}}
	for _, c := range []struct {
		changed    bool
		own, ahead Event
		want       Input
	}{
		{false, Stands, Stands, Quiet},
		{false, Stands, Gone, Free},
		{true, Stands, Stands, Stirred},
		{true, Stands, Gone, Stirred},
		{true, Gone, Gone, Lost},
	} {
		if got := BySight(0, ahead, []Sight{{Event: c.ahead}}, c.own, c.changed, 0); got != c.want {
			t.Errorf("changed %v, own %v, ahead %v: %d, want %d", c.changed, c.own, c.ahead, got, c.want)
		}
	}
}
