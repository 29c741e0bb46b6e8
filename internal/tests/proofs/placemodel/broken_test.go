package placemodel

import (
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/decide"
)

// What the explorer says of a broken variant, in part.
const (
	twoHold    = "hold at once"
	nodeGone   = "its node is gone"
	heldGone   = "is gone or is going"
	waitsIdle  = "waits for nothing"
	noOwner    = "has no owner"
	tooMany    = "leases are held"
	keptWrong  = "uses a kept place"
	impossible = "hears"
)

// broken is the real code but for one thing, in a world in which that does harm.
type broken struct {
	name, why string
	finds     string
	m         model
	breaks    func(r *rules)
}

// brokenVariants are each found.
func brokenVariants(lib library) []broken {
	return append(brokenDecisions(), append(brokenPlaces(), brokenLocks(lib)...)...)
}

// Short for signatures.
type (
	blocker = decide.Blocker
	sight   = decide.Sight
	event   = decide.Event
)

// brokenDecisions break package decide.
func brokenDecisions() []broken {
	two := []caller{one(0, sortLock), one(1, sortLock)}
	four := []caller{one(0, sortLock), one(0, sortLock), one(1, sortLock), one(1, sortLock)}
	return []broken{
		{"grants-ahead", "grants a place although others are ahead", twoHold,
			model{lag: 1, size: 2, programs: two}, func(r *rules) {
				r.step = func(s decide.State, in decide.Input) (decide.Move, bool) {
					if s == decide.Deciding && in == decide.Ahead {
						in = decide.Free
					}
					return decide.Step(s, in)
				}
			}},
		{"ignores-stir", "waits on when something has changed", waitsIdle,
			model{lag: 1, size: 2, programs: two, may: may{faultCut: 1}}, func(r *rules) {
				r.step = func(s decide.State, in decide.Input) (decide.Move, bool) {
					if s == decide.Waiting && in == decide.Stirred {
						in = decide.Quiet
					}
					return decide.Step(s, in)
				}
			}},
		{"lost-for-free", "takes a node that is gone for a turn that has come", nodeGone,
			model{lag: 1, size: 2, programs: two, may: may{faultDelete: 1}}, func(r *rules) {
				r.step = func(s decide.State, in decide.Input) (decide.Move, bool) {
					if s == decide.Waiting && in == decide.Lost {
						in = decide.Free
					}
					return decide.Step(s, in)
				}
			}},
		{"forgets-the-rest", "goes when the nodes that it watches are gone, although others are ahead", twoHold,
			model{lag: 0, size: 2, programs: four, may: may{faultCancel: 2}}, func(r *rules) {
				r.see = func(_ int, t []blocker, s []sight, own event, again bool, slack int) decide.Input {
					return decide.BySight(0, t, s, own, again, slack)
				}
			}},
		{"own-last", "looks at its own node last", nodeGone,
			model{lag: 2, size: 2, programs: two, may: may{faultDelete: 1}}, func(r *rules) {
				r.see = func(rest int, t []blocker, s []sight, own event, again bool,
					slack int) decide.Input {
					if in := decide.BySight(rest, t, s, decide.Stands, again, slack); in == decide.Free {
						return in
					}
					return decide.BySight(rest, t, s, own, again, slack)
				}
			}},
		{"change-frees", "takes a change of a node for its end", twoHold,
			model{lag: 1, size: 2, programs: two, may: may{faultChange: 1}}, func(r *rules) {
				r.see = func(rest int, t []blocker, s []sight, own event, again bool,
					slack int) decide.Input {
					for i := range s {
						if s[i].Event == decide.Unclear {
							s[i].Event = decide.Gone
						}
					}
					return decide.BySight(rest, t, s, own, again, slack)
				}
			}},
		{"nothing-moves", "goes when a writer's node is gone, which may have left a reader in its place",
			twoHold,
			model{lag: 1, size: 2, programs: []caller{down(0), one(1, sortWrite)}}, func(r *rules) {
				r.see = func(rest int, t []blocker, s []sight, own event, again bool,
					slack int) decide.Input {
					for i := range s {
						s[i].Moves = false
					}
					return decide.BySight(rest, t, s, own, again, slack)
				}
			}},
		{"twins-are-others", "waits for a second node of its own", waitsIdle,
			model{lag: 1, size: 2, programs: two, may: may{faultCut: 1}}, func(r *rules) {
				r.read = func(c *decide.Contender, names []string) decide.Listing {
					alone := *c
					alone.Doubt = false
					return alone.Read(names)
				}
			}},
		{"unread-prefix", "sees writers only", twoHold,
			model{lag: 1, size: 2, programs: []caller{one(0, sortRead), one(1, sortWrite)}}, func(r *rules) {
				r.read = func(c *decide.Contender, names []string) decide.Listing {
					var writers []string
					for _, name := range names {
						if !strings.Contains(name, "__READ__") {
							writers = append(writers, name)
						}
					}
					return c.Read(writers)
				}
			}},
	}
}

// brokenPlaces break package place, package core, or what the servers promise.
func brokenPlaces() []broken {
	two := []caller{one(0, sortLock), one(1, sortLock)}
	three := []caller{one(0, sortLock), one(1, sortLock), one(2, sortLock)}
	return []broken{
		{"watch-on-nothing", "takes a watch for set although its node was gone by then", waitsIdle,
			model{lag: 1, size: 2, programs: two}, func(r *rules) { r.missesGone = true }},
		{"no-events", "is not told when a node goes", waitsIdle,
			model{lag: 1, size: 2, programs: two}, func(r *rules) { r.dropsEvents = true }},
		{"trusts-old-watches", "takes a watch for pending that was lost with its connection", waitsIdle,
			model{lag: 1, size: 2, programs: two, may: may{faultCut: 1}},
			func(r *rules) { r.forgetsBroken = true }},
		{"no-own-watch", "does not watch its own node", nodeGone,
			model{lag: 2, size: 2, programs: two, may: may{faultDelete: 1}},
			func(r *rules) { r.noOwn = true }},
		{"no-own-answer", "does not wait for the answer about its own node", nodeGone,
			model{lag: 2, size: 2, programs: two, may: may{faultDelete: 1, faultChange: 1}},
			func(r *rules) { r.noOwnAnswer = true }},
		{"stays-behind", "leaves without deleting its node", noOwner,
			model{lag: 1, size: 2, programs: two, may: may{faultCancel: 1}},
			func(r *rules) { r.staysBehind = true }},
		{"no-sweep", "leaves without looking for what a lost create has made", noOwner,
			model{lag: 1, size: 2, programs: two, may: may{faultCut: 1}},
			func(r *rules) { r.noSweep = true }},
		{"late-create", "servers carry out a create after its caller has looked, left and looked again",
			noOwner,
			model{lag: 1, size: 2, programs: two, may: may{faultCut: 1}},
			func(r *rules) { r.lateAfterSweep = true }},
		{"early-expiry", "servers end a session before its client knows", heldGone,
			model{lag: 1, size: 3, programs: three, may: may{faultLose: 1}},
			func(r *rules) { r.expiresFirst = true }},
	}
}

// brokenLocks break what single kinds of lock do.
func brokenLocks(lib library) []broken {
	kept := model{lag: 2, size: 2, local: keeps, programs: []caller{local(0, 2), one(1, sortLock)}}
	leases := []caller{one(0, sortLease), one(1, sortLease), one(2, sortLease)}
	return []broken{
		{"kept-blind", "uses a kept place without a pending watch on the children", keptWrong,
			kept, func(r *rules) { r.keepsBlind = true }},
		{"kept-crowded", "keeps a place although the listing shows a contender that waits for it", keptWrong,
			kept, func(r *rules) { r.keepsCrowded = true }},
		{"stands-in-all", "waits for a lock while it stands in the queue of a later one", waitsIdle,
			model{lag: 1, size: 2, programs: []caller{joint(0), inOrder(1)}},
			func(r *rules) { r.standsInAll = true }},
		{"two-requests", "renews a place by a delete and a create", tooMany,
			semaphores(lib, model{lag: 1, size: 3, programs: leases, may: may{faultResize: 1}}),
			func(r *rules) { r.apart = true }},
		{"never-outdated", "goes by a lower limit although it is older", tooMany,
			semaphores(lib, model{lag: 1, size: 3, programs: leases, may: may{faultResize: 1}}),
			func(r *rules) { r.noOutdated = true }},
		{"nobody-behind", "does not count those behind it that went by the former limit", tooMany,
			semaphores(lib, model{lag: 1, size: 3, programs: leases, may: may{faultResize: 1}}),
			func(r *rules) { r.noBehind = true }},
	}
}

// The explorer finds each broken variant, with a schedule that a person can read.
func TestBroken(t *testing.T) {
	lib := libraryOf(t)
	for _, v := range brokenVariants(lib) {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			v.m.sorts, v.m.rules = lib.sorts, realRules()
			v.breaks(&v.m.rules)
			x := explore(&v.m)
			switch {
			case x.wrong == "":
				t.Fatalf("a client that %s: nothing is wrong in %d states", v.why, len(x.parent))
			case !strings.Contains(x.wrong, v.finds):
				t.Errorf("a client that %s: %s, where %q is expected", v.why, x.wrong, v.finds)
			}
			t.Logf("%s; found after %d states:\n%s", v.why, len(x.parent), x.schedule())
		})
	}
}

// A search without the sync breaks no promise: if it misses the node, the attempt makes another one, and
// deletes the first as a twin. So the sync saves a node, and nothing depends on it.
func TestSyncSavesTwins(t *testing.T) {
	m := model{lag: 4, size: 2, programs: []caller{one(0, sortLock), one(1, sortLock)}, may: may{faultCut: 1}}
	m.sorts, m.rules = libraryOf(t).sorts, realRules()
	m.rules.noSync = true
	if x := explore(&m); x.wrong != "" {
		t.Errorf("now the sync is needed, and the comment above is wrong:\n%s", x.schedule())
	}
}
