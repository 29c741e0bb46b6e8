package clockmodel

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
)

// An idea that the code does not follow: a sync in the place of the write W, and a write V of any other client for the
// proof that a quorum agreed. It would save the writes of holders. docs/clock.md says why they write all the same.
//
// In these cases W is that sync. Each answer has a zxid: the number of the last transaction that the server has
// applied. V is the transaction whose number a later answer has.

// secondSync is W, and what the client knows of V.
var secondSync = problem{
	reals: []string{
		"W.sent", "W.forwarded", "W.taken", "W.answered", "V.proposed", "V.acked", "V.committed", "V.seen",
		"zxidV", "zxidW", // of V, and in the answer to W
		"zxidProposed", // of the last transaction that was proposed when the leader took W
		"G.sent",       // the frame from which the client has counted until then
	},
	bools: []string{"sameLeader"},
	formulas: []formula{
		{"order-of-W", cause, "", inOrder("0.0", "W.sent", "W.forwarded", "W.taken", "W.answered")},
		{"order-of-V", cause, "", inOrder("0.0", "V.proposed", "V.acked", "V.committed", "V.seen", "now")},
		{"seen-after-W", cause, "", inOrder("W.answered", "V.seen")},
		{"zxids-in-order", cause, "", "(=> (<= V.proposed W.taken) (<= zxidV zxidProposed))"},
		{"one-leader", assumed, "So one connection knows one leader", "sameLeader"},
		{"zxid-above", rule, "", "(> zxidV zxidW)"},
		{"still-certain", rule, "", "(< (- W.answered unseen) (- (+ G.sent timeout) margin))"},
		{"proven-before", rule, "", "(>= expired (+ G.sent timeoutTakes))"},
		{"acked-before-elected", servers, "", "(=> newLeader (>= elected V.acked))"},
	},
	events: []event{
		{"V.proposed", "", "the leader of the client's server proposes V, a write of another client"},
		{"V.acked", "(not (and newLeader (> V.committed elected)))", "a quorum acknowledges V"},
		{"V.acked", "(and newLeader (> V.committed elected))", "a quorum acknowledges V, and the network holds that up"},
		{"V.committed", "", "the leader of the client's server has the acknowledgements, and commits V"},
		{"W.sent", "", "the client sends the sync W"},
		{"W.taken", "sameLeader", "the leader takes W"},
		{"W.taken", "(not sameLeader)", "another leader, which the server follows now, takes W"},
		{"W.answered", "", "the client has the answer to W"},
		{"V.seen", "", "the client has an answer with the number of V, and counts from F on"},
	},
}

// syncWaits is what makes the idea right for clients of followers and observers. The leader does not do so for its
// own clients.
var syncWaits = formula{"sync-waits", servers, "", "(<= zxidProposed zxidW)"}

// Of the ending, nothing holds that a write of one's own shows.
var othersEnding = ending.without("alive-at-W").without("quorum")

// others are the cases in which the client is connected to a follower or an observer.
var others = []problem{
	secondSync.and(lists).and(othersEnding).with(syncWaits),
	secondSync.and(handshake).and(othersEnding).with(syncWaits),
}

var othersAtLeader = secondSync.and(atLeader).and(othersEnding).with(
	formula{"answers-with-applied", cause, "", "(=> (<= V.committed W.taken) (>= zxidW zxidV))"})

// The writes of others prove as much as one's own to a client of a follower or an observer, and each formula is
// needed.
func TestWritesOfOthers(t *testing.T) {
	printed := map[string]bool{}
	for _, p := range others {
		t.Run(p.name, func(t *testing.T) {
			p.follows(t)
			p.needed(t, printed)
		})
	}
	longtest.Covered(t, "%d formulas of the idea to count on writes of others, each of them needed", len(printed))
}

// To the leader's own clients the writes of others prove nothing, because there a sync does not wait for what was
// proposed before. If it did, or if no acknowledgement were late, they would.
func TestWritesOfOthersAtLeader(t *testing.T) {
	m, ok := othersAtLeader.counterexample(t, othersAtLeader.wishes()...)
	if !ok {
		t.Fatal("the writes of others prove something to a client of the leader")
	}
	schedule := othersAtLeader.printed(t, m)
	t.Logf("a client of the leader that counts on writes of others:\n%s", schedule)
	if *writes {
		if err := report.Section(clockPage, "others", schedule); err != nil {
			t.Error(err)
		}
	}
	if _, ok := othersAtLeader.with(syncWaits).proven(t); !ok {
		t.Error("not proven if its syncs wait")
	}
	soon := othersAtLeader.with(formula{"acks-are-not-late", assumed, "", "(<= (- V.committed V.acked) (* 0.08 timeout))"})
	soon.goals = []formula{{"lease-ends-first", rule, "", endsFirst("F.sent", "now")}}
	if _, ok := soon.proven(t); !ok {
		t.Error("not proven if acknowledgements are no later than the margin allows")
	}
}

// An answer before the sync is no measure: V may have been proposed between the two.
func TestZxidOfEarlierAnswer(t *testing.T) {
	earlier := formula{"zxid-above-an-earlier-one", rule, "", "(> zxidV zxidBefore)"}
	for _, p := range others {
		p = p.without("zxid-above").and(problem{reals: []string{"zxidBefore"}}).with(earlier)
		if enough, ok := p.proven(t); ok {
			t.Errorf("%s: proven from %v", p.name, enough)
		}
	}
}
